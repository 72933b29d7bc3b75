"""`python -m ordercast.telemetry.spool.worker`: the sealer, a process of its own: it does not hold up the
receiver.

Jobs come on stdin and answers go to stdout, each a JSON object in a line. It ends when stdin does. If the receiver
is killed meanwhile the job in hand is finished; the directory's lock, which it inherited, keeps the next one
waiting.
"""

import contextlib
import gc
import importlib.abc
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from ordercast.telemetry.spool.sealed import DamagedError, Segment
from ordercast.telemetry.spool.sealing import merge, seal

#: Ordering and receiving come first.
NICENESS = 5


def perform(job: dict[str, Any]) -> dict[str, Any]:
    paths = [Path(path) for path in job["paths"]]
    try:
        if job["do"] == "seal":
            done = seal(paths[0], job["salt"])
            segments = [told(segment) for segment in done.segments]
            return {"segments": segments, "damages": done.damages, "poison": dict(done.poison)}
        return {"segments": [told(merge(paths))]}
    except (DamagedError, OSError) as error:
        return {"error": f"{type(error).__name__}: {error}", "errno": getattr(error, "errno", None)}


def told(segment: Segment) -> dict[str, Any]:
    return {
        "first": segment.first,
        "end": segment.end,
        "bytes": segment.bytes,
        "received_ns_max": segment.received_ns_max,
        "path": str(segment.path),
    }


def heard(told: dict[str, Any]) -> Segment:
    """The other way round."""
    return Segment(**{**told, "path": Path(told["path"])})


class WithoutPandas(importlib.abc.MetaPathFinder):
    """pyarrow imports it where it is installed, to see whether lists are pandas' own: half a second and 50 MB."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("the sealer does without it", name=name)


def main() -> None:
    sys.meta_path.insert(0, WithoutPandas())
    # Ctrl-C reaches everybody at the terminal; the receiver says when it is over.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    # Rows are made of very many objects, none of which refers to another that refers back.
    gc.freeze()
    gc.disable()
    for line in sys.stdin:
        print(json.dumps(perform(json.loads(line))), flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
