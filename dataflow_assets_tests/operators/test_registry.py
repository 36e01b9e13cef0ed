"""Where operators are found: in the package by name, in other packages by entry points."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import TextMapper, find_operator, operators
from dataflow_assets.operators import registry as registry_module

TREE = Path(__file__).parents[2]


class Theirs(TextMapper):
    """An operator of another package."""

    name = "their_operator"


class Clashing(TextMapper):
    """An operator of another package with a name of ours."""

    name = "strip_html"


@pytest.fixture
def entry_points(monkeypatch: pytest.MonkeyPatch) -> Iterator[list]:
    """The operators of other packages; to be filled by the test."""
    classes: list = []
    points = [SimpleNamespace(load=lambda: classes.pop())]
    monkeypatch.setattr(registry_module, "entry_points", lambda group: points if classes else [])
    monkeypatch.setattr(registry_module, "_registered", dict(operators()))
    registry_module._load_entry_points.cache_clear()
    yield classes
    registry_module._load_entry_points.cache_clear()


def test_an_operator_of_another_package_is_found(entry_points: list) -> None:
    entry_points.append(Theirs)
    assert find_operator("their_operator") is Theirs


def test_a_name_of_ours_in_another_package_is_refused(entry_points: list) -> None:
    entry_points.append(Clashing)
    with pytest.raises(ConfigError, match="two operators are called 'strip_html'"):
        find_operator("strip_html")


@pytest.mark.parametrize("path", [".steps:Theirs", ":Theirs", "steps:"])
def test_half_a_path_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="is no path to Python code"):
        find_operator(path)


def test_a_name_is_found_without_importing_all_operators() -> None:
    code = (
        "import sys; from dataflow_assets.operators.registry import find_operator; "
        "find_operator('strip_html'); "
        "print(sorted(name for name in sys.modules if name.startswith('dataflow_assets.operators.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=TREE, capture_output=True, text=True, check=True)
    assert "refiners.html'" in done.stdout and "operators.llm" not in done.stdout


def test_the_module_of_every_operator_is_known_from_its_source() -> None:
    ours = {name: cls.__module__ for name, cls in operators().items()}
    ours = {name: module for name, module in ours.items() if module.startswith("dataflow_assets.")}
    found = registry_module._modules_by_name()
    assert {name: found.get(name) for name in ours} == ours
