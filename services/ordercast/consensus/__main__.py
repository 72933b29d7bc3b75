"""`python -m ordercast.consensus`: a process that runs this service alone."""

from ordercast.consensus.service import Consensus
from ordercast.runtime.process.main import main

if __name__ == "__main__":
    main([Consensus])
