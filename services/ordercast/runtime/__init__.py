"""Drives machines with real time, disks and connections."""
