"""The consoles, on stdout and on stderr. To load rich takes a while: `output` asks for this module late."""

from rich.console import Console

out = Console()
err = Console(stderr=True)
