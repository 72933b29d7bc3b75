"""ISIS: CBCAST and ABCAST in virtually synchronous groups."""
