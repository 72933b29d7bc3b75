"""The exit codes of a process."""

#: The process can no longer be trusted, or its disk cannot.
EXIT_BROKEN = 70
#: Membership has given this incarnation up: starting again gives it a new one.
EXIT_FENCED = 75
#: Starting again does not help: somebody has to look at the configuration.
EXIT_REFUSED = 78
