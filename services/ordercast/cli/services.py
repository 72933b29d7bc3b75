"""Any set of services in one process: `python -m ordercast.cli.services SERVICE... SETTINGS`.

Apart from the command line's own imports, so that a process of a cluster starts quickly.
"""

import sys

from ordercast.consensus.service import Consensus
from ordercast.gateway.reassignment import Planner
from ordercast.gateway.service import GatewayProcess
from ordercast.membership.placement import rebalance
from ordercast.membership.service import MembershipProcess
from ordercast.runtime.process.main import main
from ordercast.runtime.process.node import Service
from ordercast.runtime.process.settings import help_page
from ordercast.sequencer.service import Sequencer


class PlanningGateway(GatewayProcess):
    """Plans as membership places: no service imports another, so they are brought together here."""

    def planner(self) -> Planner:
        return rebalance


SERVICES: dict[str, type[Service]] = {
    "membership": MembershipProcess,
    "consensus": Consensus,
    "sequencer": Sequencer,
    "gateway": PlanningGateway,
}


#: Not a part of a node: a process of its own, with settings of its own.
TELEMETRY = "telemetry"


def run(arguments: list[str]) -> None:
    """Services first, then settings as flags."""
    count = next((i for i, argument in enumerate(arguments) if argument.startswith("-")), len(arguments))
    names, settings = arguments[:count], arguments[count:]
    if names == [TELEMETRY]:
        run_telemetry(settings)
        return
    if TELEMETRY in names:
        print("telemetry is a process of its own: `ordercast serve telemetry`, without others", file=sys.stderr)
        sys.exit(2)
    if not names and settings in (["--help"], ["-h"]):
        help_page(()).show()
        return
    unknown = [name for name in names if name not in SERVICES]
    if unknown or not names:
        known = ", ".join((*SERVICES, TELEMETRY))
        wrong = f", and not {', '.join(unknown)}" if unknown else ""
        print(f"which services? There are {known}{wrong}: `ordercast serve --help` explains them", file=sys.stderr)
        sys.exit(2)
    main([SERVICES[name] for name in SERVICES if name in names], settings)


def run_telemetry(settings: list[str]) -> None:
    """What it needs beside the rest is installed only where it runs."""
    try:
        from ordercast.telemetry.service import main as serve
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        print("the telemetry service needs the package pyarrow (ordercast[telemetry])", file=sys.stderr)
        sys.exit(2)
    serve(settings)


if __name__ == "__main__":
    run(sys.argv[1:])
