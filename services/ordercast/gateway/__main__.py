"""`python -m ordercast.gateway`: a process that runs this service alone."""

from ordercast.gateway.service import GatewayProcess
from ordercast.runtime.process.main import main

if __name__ == "__main__":
    main([GatewayProcess])
