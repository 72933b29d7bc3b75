"""`python -m ordercast.sequencer`: a process that runs this service alone."""

from ordercast.runtime.process.main import main
from ordercast.sequencer.service import Sequencer

if __name__ == "__main__":
    main([Sequencer])
