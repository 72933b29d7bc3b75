"""`python -m ordercast.telemetry`: the telemetry service."""

from ordercast.telemetry.service import main

if __name__ == "__main__":
    main()
