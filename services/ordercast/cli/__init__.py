"""The command line: `ordercast ...`."""
