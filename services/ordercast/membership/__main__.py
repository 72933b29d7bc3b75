"""`python -m ordercast.membership`: a process that runs this service alone."""

from ordercast.membership.service import MembershipProcess
from ordercast.runtime.process.main import main

if __name__ == "__main__":
    main([MembershipProcess])
