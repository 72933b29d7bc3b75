"""Creates the domains and groups that the values of the chart declare, where they are missing.

It may run as often as one likes. What is there and should have more replicas, or another retention, gets them.
What is there and differs otherwise cannot be changed: it is named, and the script ends with 3, for another try
would find the same.
Nothing is deleted, whatever is declared.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from connecting import as_arguments, connect, parser, patiently

import ordercast
from ordercast.client.errors import AlreadyExists
from ordercast.core.members import places_of
from ordercast.v1.membership_pb2 import Domain, Group, Retention

REPLICAS_DEFAULT = 3
#: Exit codes. The Job of the chart knows the second one.
FAILED, DIFFERS = 1, 3


class Declaring:
    def __init__(self, client: ordercast.SyncConnection, options: argparse.Namespace) -> None:
        self.client = client
        self.options = options
        self.until = time.monotonic() + options.patience
        #: What is not as it is declared: what may be so after another try, and what cannot be changed.
        self.problems: list[str] = []
        self.differences: list[str] = []

    def all(self, declared: list[dict[str, Any]]) -> None:
        domains = {domain.name: domain for domain in patiently(self.client.domains, self.until)}
        for each in declared:
            self.domain(each, domains.get(each["name"]))
        groups = {group.name: group for group in patiently(self.client.groups, self.until)}
        for each in declared:
            for group in each.get("groups") or []:
                self.group(group, each["name"], groups.get(group["name"]))

    # -------------------------------------------------------------------------------------------- domains

    def domain(self, declared: dict[str, Any], there: Domain | None) -> None:
        name, protocol = declared["name"], declared.get("protocol") or "scalatom"
        settings = texts(declared.get("settings"))
        if there is None:
            self._create(lambda: self.client.create_domain(name, protocol, settings), f"domain {name}")
            return
        if there.protocol != protocol:
            self._differs(f"the domain {name} has the protocol {there.protocol}, and not {protocol}")
        if dict(there.settings) != settings:
            self._differs(f"the domain {name} has the settings {dict(there.settings)}, and not {settings}")

    # --------------------------------------------------------------------------------------------- groups

    def group(self, declared: dict[str, Any], domain: str, there: Group | None) -> None:
        name, replicas = declared["name"], declared.get("replicas") or REPLICAS_DEFAULT
        settings, kept = texts(declared.get("settings")), declared.get("retention") or {}
        retention = Retention(bytes=kept.get("bytes") or 0, age_s=kept.get("ageSeconds") or 0)
        if there is None:
            # The number is always given: otherwise a cluster that is half started would make fewer copies.
            self._create(
                lambda: self.client.create_group(
                    name, domain=domain, replicas=replicas, retention=retention, settings=settings
                ),
                f"group {name}",
            )
            return
        if there.domain != domain:
            self._differs(f"the group {name} is in the domain {there.domain}, and not in {domain}")
            return
        # What is not declared is left as somebody set it.
        if "retention" in declared and there.retention != retention:
            patiently(lambda: self.client.update_group(name, retention=retention), self.until)
            print(f"group {name} keeps {retention.bytes} bytes, {retention.age_s} s (0: all)", flush=True)
        if dict(there.settings) != settings:
            self._differs(f"the group {name} has the settings {dict(there.settings)}, and not {settings}")
        self._replicas(name, len(places_of(there)), replicas)

    def _replicas(self, name: str, there: int, wanted: int) -> None:
        if there > wanted:
            print(
                f"group {name} has {there} replicas, {wanted} are declared: it keeps them "
                f"(`ordercast group remove-replica {name}`)",
                flush=True,
            )
        for _ in range(there, wanted):
            command = [sys.executable, "-m", "ordercast.cli.main", "group", "add-replica", name]
            timeout_s = max(1.0, self.until - time.monotonic())
            done = subprocess.run(
                [*command, *as_arguments(self.options), f"--timeout={timeout_s:.0f}"], check=False
            )
            if done.returncode:
                self.problems.append(f"the group {name} has fewer than {wanted} replicas: see above why")
                return

    def _create(self, create: Any, what: str) -> None:
        try:
            patiently(create, self.until)
            print(f"created {what}", flush=True)
        except AlreadyExists:
            # An earlier try got through, and its answer did not; or somebody else was faster.
            print(f"{what} is there", flush=True)

    def _differs(self, problem: str) -> None:
        self.differences.append(f"{problem}: that cannot be changed. Declare it as it is, or under another name")


def texts(settings: Mapping[str, Any] | None) -> dict[str, str]:
    """As users write them on the command line."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (settings or {}).items()
    }


def main(arguments: list[str] | None = None) -> int:
    made = parser(__doc__)
    made.add_argument(
        "--declared", type=Path, required=True, metavar="FILE", help="as the value `domains`, in JSON"
    )
    made.add_argument("--patience", type=float, default=300.0, metavar="SECONDS")
    options = made.parse_args(arguments)
    with connect(options) as client:
        declaring = Declaring(client, options)
        declaring.all(json.loads(options.declared.read_text()))
    for problem in (*declaring.problems, *declaring.differences):
        print(problem, file=sys.stderr)
    if declaring.differences:
        return DIFFERS
    return FAILED if declaring.problems else 0


if __name__ == "__main__":
    sys.exit(main())
