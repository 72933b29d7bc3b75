"""The scripts that the chart brings along for its Jobs and its test."""

import importlib.util
from types import ModuleType

import pytest

from deploy.kubernetes.rendering import CHART

SCRIPTS = CHART / "files" / "scripts"


def loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A script as a module. In the pod its folder is the first place for imports."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    spec = importlib.util.spec_from_file_location(f"chart_{name}", SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
