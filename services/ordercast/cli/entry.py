"""What the script `ordercast` calls. A package of an extra may be missing: then a sentence says which extra.

Nothing is imported here that is not Python's own: the client alone is installed without the command line.
"""

import sys

#: By the name under which Python imports it: the extra that brings it.
EXTRAS = {
    "confluent_kafka": "kafka",
    "grpc_health": "server",
    "grpc_reflection": "server",
    "kubernetes": "k8s",
    "lmdb": "server",
    "matplotlib": "bench",
    "nats": "bench",
    "numpy": "analytics",
    "opentelemetry": "server",
    "pandas": "analytics",
    "prometheus_client": "server",
    "pyarrow": "telemetry",
    "pydantic": "server",
    "pydantic_settings": "server",
    "pyspark": "analytics",
    "rich": "cli",
    "structlog": "server",
    "typer": "cli",
}
WRONG_USAGE = 2


def main() -> None:
    try:
        from ordercast.cli.main import app

        app()
    except ModuleNotFoundError as error:
        sentence = how_to_install(error.name or "")
        if sentence is None:
            raise
        print(f"error: {sentence}", file=sys.stderr)
        sys.exit(WRONG_USAGE)


def how_to_install(module: str) -> str | None:
    """
    >>> how_to_install("lmdb.cpython")
    "this needs lmdb, which is not installed: pip install 'ordercast[server]'"
    """
    package = module.partition(".")[0]
    if package not in EXTRAS:
        return None
    return f"this needs {package}, which is not installed: pip install 'ordercast[{EXTRAS[package]}]'"
