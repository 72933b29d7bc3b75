"""The generated code is what the .proto files say, and the .proto files follow the rules of buf."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.tidy import rules

PROTO = rules.ROOT / "proto"
GENERATED = rules.SERVICES / "ordercast" / "v1"


def run(*command: str | Path) -> None:
    done = subprocess.run(command, cwd=rules.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def generated_files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*_pb2*.py*"))}


def plugins(makefile: str) -> list[str]:
    """The outputs that `make proto` asks protoc for."""
    found = re.search(r"^PROTOC_PLUGINS := (.+)$", makefile, re.MULTILINE)
    assert found
    return found[1].split()


def generate(protos: Path, out: Path) -> None:
    outputs = [f"--{plugin}_out={out}" for plugin in plugins((rules.ROOT / "Makefile").read_text())]
    files = sorted(str(path) for path in protos.glob("ordercast/v1/*.proto"))
    assert files, "there are no .proto files"
    run(sys.executable, "-m", "grpc_tools.protoc", "-I", protos, *outputs, *files)


def out_of_date(protos: Path, committed: Path, scratch: Path) -> list[str]:
    """The names of generated files that are missing, stale or left over."""
    scratch.mkdir()
    generate(protos, scratch)
    fresh, old = generated_files(scratch / "ordercast" / "v1"), generated_files(committed)
    return sorted(name for name in fresh.keys() | old.keys() if fresh.get(name) != old.get(name))


def test_the_committed_code_is_what_protoc_generates(tmp_path):
    assert out_of_date(PROTO, GENERATED, tmp_path / "out") == [], "run `make proto`"


def test_a_changed_proto_makes_the_committed_code_out_of_date(tmp_path):
    protos, committed = tmp_path / "proto", tmp_path / "first" / "ordercast" / "v1"
    source = protos / "ordercast" / "v1" / "a.proto"
    source.parent.mkdir(parents=True)
    source.write_text('syntax = "proto3";\npackage ordercast.v1;\nmessage A {}\n')
    assert "a_pb2.py" in out_of_date(protos, tmp_path / "nothing", tmp_path / "first")
    assert out_of_date(protos, committed, tmp_path / "same") == []
    source.write_text('syntax = "proto3";\npackage ordercast.v1;\nmessage A { string b = 1; }\n')
    assert "a_pb2.pyi" in out_of_date(protos, committed, tmp_path / "changed")
    source.rename(source.with_name("c.proto"))
    assert "a_pb2.py" in out_of_date(protos, committed, tmp_path / "renamed")


def test_the_proto_files_follow_the_rules_of_buf():
    buf = shutil.which("buf", path=Path(sys.executable).parent) or shutil.which("buf")
    assert buf, "buf is not installed: run `make setup`"
    run(buf, "lint", PROTO)


def test_the_committed_code_of_the_example_of_a_protocol_is_what_protoc_generates(tmp_path):
    example = rules.ROOT / "examples" / "protocol"
    outputs = [f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    file = example / "ordercast_tandem" / "tandem.proto"
    run(sys.executable, "-m", "grpc_tools.protoc", "-I", PROTO, "-I", example, *outputs, file)
    assert generated_files(tmp_path / "ordercast_tandem") == generated_files(example / "ordercast_tandem")
