"""The clients' side: batching into envelopes, chaining, receipts."""
