"""The rules of the code base, as functions from source text to what is wrong with it.

They look at text and syntax trees only and never import what they check, so each can be proven on a bad
snippet. `CONTRIBUTING.md` says why the rules are there; the tests beside this file apply them.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVICES = ROOT / "services"
PACKAGE = "ordercast"
GENERATED = f"{PACKAGE}.v1"

FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 70

# --- The files of the repository


@cache
def repository_files() -> tuple[Path, ...]:
    """What is tracked, or would be: files that git ignores are not ours. Without git, what is on disk."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        paths = [ROOT / name for name in listed.split("\0") if name]
    except (FileNotFoundError, subprocess.CalledProcessError):
        ignored = {".git", ".venv", "build", "dist", "__pycache__"}
        paths = [p for p in ROOT.rglob("*") if not ignored.intersection(p.relative_to(ROOT).parts)]
    return tuple(sorted(p for p in paths if p.is_file()))


def text_of(path: Path) -> str | None:
    """None for what is not text, such as pictures."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def module_of(path: Path) -> str:
    """services/ordercast/core/ids.py -> ordercast.core.ids; an __init__.py keeps its name."""
    return ".".join(path.relative_to(SERVICES).with_suffix("").parts)


@cache
def modules() -> dict[str, str]:
    """The source text of every module under services/ that is written by hand, by module name."""
    found = {}
    for path in repository_files():
        if path.suffix == ".py" and path.is_relative_to(SERVICES):
            module = module_of(path)
            if not within(module, GENERATED):
                found[module] = path.read_text(encoding="utf-8")
    return found


# --- Imports

SHARED_SCHEMA = f"{PACKAGE}.telemetry.schema"


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def imports(source: str, module: str) -> Iterator[tuple[int, str]]:
    """(line, absolute name) of each import, wherever it stands.

    `from a import b` yields a.b: whether b is a module or a name in one, a.b lies within a. An __init__
    names itself with its last part, so that one leading dot means the package in either kind of file.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=name, names=names, level=level):
                base = module.split(".")[:-level] if level else []
                prefix = ".".join(base + ([name] if name else []))
                for alias in names:
                    yield node.lineno, prefix if alias.name == "*" else f"{prefix}.{alias.name}"


def component(module: str) -> str:
    """ordercast.core.ids -> core; what lies directly in the import root is the component ''.

    The schema of telemetry lies beside the service that keeps it, and is everybody's.
    """
    if within(module, SHARED_SCHEMA):
        return "schema"
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__init__" else ""


# --- Layers: who may import whom

SERVICE_COMPONENTS = frozenset({"consensus", "membership", "sequencer", "gateway", "telemetry", "analytics"})
ONLY_IMPORTS = {
    "core": frozenset({"core", "v1"}),
    "protocols": frozenset({"core", "protocols", "v1"}),
    "client": frozenset({"client", "core", "v1"}),
    "schema": frozenset({"schema"}),
}
MAY_IMPORT_SIM = frozenset({"sim", "local", "cli"})


def layering_errors(source: str, module: str) -> list[str]:
    here = component(module)
    errors = []
    for line, name in imports(source, module):
        if not within(name, PACKAGE):
            continue
        there = component(name)
        if here == "client" and within(name, CATALOGUE):
            continue  # What a session token means, and what can be read causally, each protocol says of itself.
        if here in ONLY_IMPORTS and there not in ONLY_IMPORTS[here]:
            errors.append(f"{module}:{line}: {here} may not import {name}")
        elif here in SERVICE_COMPONENTS and there in SERVICE_COMPONENTS - {here}:
            errors.append(f"{module}:{line}: the service {here} imports the service {there}")
        elif here == "runtime" and there in SERVICE_COMPONENTS:
            errors.append(f"{module}:{line}: the runtime imports the service {there}")
        elif there == "sim" and here not in MAY_IMPORT_SIM:
            errors.append(f"{module}:{line}: only sim, local and cli may import {name}")
    return errors


# --- Purity: no input or output, no clock, no chance

PURE_LIBRARIES = frozenset(
    [
        "__future__",
        "abc",
        "bisect",
        "collections",
        "dataclasses",
        "enum",
        "functools",
        "hashlib",
        "heapq",
        "itertools",
        "math",
        "operator",
        "re",
        "struct",
        "typing",
        "zlib",
    ]
)
PURE_PACKAGES = ("google.protobuf", f"{PACKAGE}.core", f"{PACKAGE}.protocols", GENERATED)
# id() and hash() are here because what they return differs from process to process.
IMPURE_CALLS = frozenset(["open", "print", "input", "breakpoint", "id", "hash", "eval", "exec", "__import__"])


#: The one module of `protocols` that looks at what is installed. No machine of a protocol imports it.
CATALOGUE = f"{PACKAGE}.protocols.catalogue"


def is_pure_by_place(module: str) -> bool:
    """Everything in core and protocols but the catalogue, and every machine."""
    if module == CATALOGUE:
        return False
    return component(module) in {"core", "protocols"} or module.split(".")[-1] == "machine"


def pure_modules(sources: dict[str, str]) -> list[str]:
    """The modules that have to be pure: those by place, and what they pull in from their own service.

    A machine may be spread over several files of its service; importing it also runs the __init__ of
    that service's package. Those files are then held to the same rules.
    """
    pending = [module for module in sources if is_pure_by_place(module)]
    found: dict[str, None] = {}
    while pending:
        module = pending.pop()
        if module in found:
            continue
        found[module] = None
        own = f"{PACKAGE}.{component(module)}"
        named = [name for _, name in imports(sources[module], module) if within(name, own)]
        parents = [module.rsplit(".", up)[0] for up in range(1, module.count("."))]
        for name in [*named, *parents]:
            candidates = (name, f"{name}.__init__", name.rpartition(".")[0])
            pending.extend(c for c in candidates if c in sources)
    return sorted(found)


def purity_errors(source: str, module: str) -> list[str]:
    own = f"{PACKAGE}.{component(module)}"
    errors = []
    for line, name in imports(source, module):
        pure = name.split(".")[0] in PURE_LIBRARIES or any(within(name, p) for p in (*PURE_PACKAGES, own))
        if not pure:
            errors.append(f"{module}:{line}: pure code may not import {name}")
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in IMPURE_CALLS:
                errors.append(f"{module}:{node.lineno}: pure code may not call {name}()")
            case ast.keyword(arg="key", value=ast.Name(id=name)) if name in IMPURE_CALLS:
                errors.append(f"{module}:{node.value.lineno}: pure code may not sort by {name}()")
    return errors


# --- The order of sets: it changes from process to process

SET_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference"})
SET_OPERATORS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)
ORDER_TAKERS = frozenset({"list", "tuple", "enumerate", "iter", "zip", "map", "filter", "deque"})
ORDER_BLIND = frozenset({"sorted", "set", "frozenset", "any", "all", "len"})


def is_set(node: ast.expr) -> bool:
    """An expression that is a set by its looks; a name that holds one is not known here."""
    match node:
        case ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in SET_METHODS:
            return is_set(value) or is_keys(value)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, SET_OPERATORS):
            return any(is_set(side) or is_keys(side) for side in (left, right))
    return False


def is_keys(node: ast.expr) -> bool:
    """d.keys() has the order of insertion, but `d.keys() & e.keys()` is a set."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys"


def set_order_errors(source: str, module: str) -> list[str]:
    tree = ast.parse(source)
    harmless: set[ast.expr] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), args=args) if name in ORDER_BLIND:
                harmless.update(args)
            case ast.Set(elts=elements):
                harmless.update(elements)
    lines = []
    for node in ast.walk(tree):
        match node:
            case ast.For(iter=iterated) if is_set(iterated):
                lines.append(iterated.lineno)
            case ast.ListComp() | ast.GeneratorExp() | ast.DictComp() if node not in harmless:
                lines += [g.iter.lineno for g in node.generators if is_set(g.iter)]
            case ast.Call(func=ast.Name(id=name), args=args) if name in ORDER_TAKERS and node not in harmless:
                lines += [a.lineno for a in args if is_set(a)]
            case ast.Call(func=ast.Attribute(attr="join" | "fromkeys" | "extend"), args=[first, *_]):
                lines += [first.lineno] if is_set(first) else []
            case ast.Starred(value=value) if is_set(value) and node not in harmless:
                lines.append(value.lineno)
    return [f"{module}:{line}: the order of a set is taken; sort it first" for line in sorted(lines)]


# --- Size


def size_errors(source: str, module: str) -> list[str]:
    errors = []
    lines = len(source.splitlines())
    if lines > FILE_LINES_MAX:
        errors.append(f"{module}: {lines} lines, more than {FILE_LINES_MAX}")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                errors.append(
                    f"{module}:{node.lineno}: {node.name} has {lines} lines, more than {FUNCTION_LINES_MAX}"
                )
    return errors


# --- Words that may not stand in a file (put together here, so that this file is clean itself)

UNFINISHED_WORDS = ("Not" + "ImplementedError", "TO" + "DO", "FIX" + "ME", "X" * 3)
UNFINISHED = re.compile(r"\b(" + "|".join(UNFINISHED_WORDS) + r")\b")
REGISTRIES = re.compile(
    "|".join(
        re.escape(name + "." + top)
        for name, top in [
            ("py" + "pi", "org"),
            ("python" + "hosted", "org"),
            ("npmjs", "org"),
            ("npmjs", "com"),
            ("anaconda", "org"),
            ("crates", "io"),
            ("rubygems", "org"),
            ("maven", "org"),
            ("proxy.golang", "org"),
        ]
    ),
    re.IGNORECASE,
)
LOCK_LINE = re.compile(r"(    --hash=sha256:[0-9a-f]{64}|[a-z0-9][a-z0-9._-]*==[^\s;]+( ; [^:/]+)?)( \\)?")
SOURCE_SUFFIXES = frozenset({".py", ".pyi", ".proto", ".sh", ".toml", ".yaml", ".yml", ".json", ".tpl", ""})


def is_source(path: Path) -> bool:
    return path.suffix in SOURCE_SUFFIXES and path.name != "LICENSE"


def word_errors(text: str, name: str, words: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {found.group()}"
        for number, line in enumerate(text.splitlines(), start=1)
        for found in words.finditer(line)
    ]


def lock_errors(text: str, name: str) -> list[str]:
    """A lock file holds pinned versions and hashes: no option, no index, no path, no address."""
    return [
        f"{name}:{number}: neither a pinned version nor a hash: {line}"
        for number, line in enumerate(text.splitlines(), start=1)
        if not LOCK_LINE.fullmatch(line)
    ]


# --- Links between documents

FENCED = re.compile(r"^ {0,3}(```+|~~~+).*?^ {0,3}\1[`~]*\s*?$", re.DOTALL | re.MULTILINE)
INLINE_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
LINK = re.compile(
    r"""\]\(\s*<?(?P<inline>[^\s)>]+)>?(?:\s+["'(][^)]*)?\)"""
    r"""|^ {0,3}\[[^\]]+\]:\s*<?(?P<reference>[^\s>]+)"""
    r"""|\b(?:href|src)\s*=\s*["'](?P<html>[^"']+)["']""",
    re.MULTILINE,
)
ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)


def relative_links(markdown: str) -> list[str]:
    """The targets of links to files, without fragments; what is quoted as code is no link."""
    text = INLINE_CODE.sub("", FENCED.sub("", markdown))
    targets = [m["inline"] or m["reference"] or m["html"] for m in LINK.finditer(text)]
    return [t.split("#")[0].split("?")[0] for t in targets if not ABSOLUTE.match(t)]


def link_errors(markdown: str, path: Path) -> list[str]:
    errors = []
    for target in relative_links(markdown):
        base = ROOT if target.startswith("/") else path.parent
        if not (base / target.lstrip("/")).exists():
            errors.append(f"{path.relative_to(ROOT)}: no such file: {target}")
    return errors


# --- Protocols: only their own folders know them by name


@cache
def protocol_names() -> tuple[str, ...]:
    """Folders of `protocols` that export a protocol."""
    home = SERVICES / PACKAGE / "protocols"
    exported = (path for path in repository_files() if path.name == "protocol.py" and path.parent.parent == home)
    return tuple(sorted(path.parent.name for path in exported))


#: Protocols whose names are words that others need as well: of these, only strings and modules are names.
ALSO_WORDS = ("optimistic",)


def protocol_name_errors(source: str, module: str, names: tuple[str, ...]) -> list[str]:
    """Lines that name a protocol, in whatever way, outside `protocols/<p>` and `sim/<p>`."""
    errors = []
    for name in names:
        own = (f"{PACKAGE}.protocols.{name}", f"{PACKAGE}.sim.{name}")
        if module != CATALOGUE and not any(within(module, package) for package in own):
            pattern = rf"(?<![a-z]){name}(?![a-z])"
            if name in ALSO_WORDS:
                pattern = rf"""["']{name}["']|\b(?:protocols|sim)\.{name}\b|\bimport {name}\b|\b{name}_pb2\b"""
            word = re.compile(pattern, re.IGNORECASE)
            errors += word_errors(source, module, word)
    return errors


KINDS_OF_MEMBERS = tuple(
    f"{PACKAGE}.{name}" for name in ("core.members", "core.protocol", "membership.kinds", "protocols")
)
WHICH_KIND = re.compile(r"\b(how_members_change|Members\.[A-Z]+)\b")


def kind_of_members_errors(source: str, module: str) -> list[str]:
    """Lines that ask which kind of members a group has, instead of asking the kind what they want to know."""
    if any(within(module, package) for package in KINDS_OF_MEMBERS):
        return []
    return word_errors(source, module, WHICH_KIND)
