"""Paxos: single instances over several groups (proposer, acceptor), and a replicated log (log)."""
