"""Where a class of open-dataflow is: by its name alone, or by a dotted path; nothing of it is imported."""

import ast
import difflib
import importlib.util
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from dataflow_assets.errors import ConfigError

PACKAGE = "dataflow"
DISTRIBUTION = "open-dataflow"
OPERATORS = f"{PACKAGE}.operators"


class Place(NamedTuple):
    """A class: the module that it is imported from, its name there, and the file in which it stands."""

    module: str
    name: str
    file: Path

    @property
    def path(self) -> str:
        """The dotted path."""
        return f"{self.module}.{self.name}"

    @property
    def is_of_package(self) -> bool:
        """Whether it is of open-dataflow itself, not a user's own."""
        return self.module.partition(".")[0] == PACKAGE


def is_installed() -> bool:
    """Whether open-dataflow is there."""
    return _package_folder() is not None


def find_place(path: str) -> Place:
    """The class that `path` means. Raises ConfigError, with the nearest names, where there is none.

    `LowercaseRefiner`, `general_text.LowercaseRefiner` and
    `dataflow.operators.general_text.LowercaseRefiner` are one; `my.module.Class` is a user's own.
    """
    module, _, name = path.replace(":", ".").rpartition(".")
    known = _known()
    for prefix in ("", f"{OPERATORS}."):
        found = known.get(f"{prefix}{module}.{name}") if module else None
        if found is not None:
            return found
    if not module:
        return _by_name(name, known)
    file = None if module.startswith(OPERATORS) and module.count(".") == 2 else module_file(module)
    if file is not None:
        return Place(module, name, file)
    raise ConfigError(
        f"there is no operator {path!r} of {DISTRIBUTION}, and no Python source of a module {module!r}"
        f"{_hint(name, known)}"
    )


def _by_name(name: str, known: Mapping[str, Place]) -> Place:
    found = [place for place in known.values() if place.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        paths = " or ".join(place.path for place in found)
        raise ConfigError(f"{DISTRIBUTION} has {len(found)} operators {name!r}; say {paths}")
    raise ConfigError(f"there is no operator {name!r} of {DISTRIBUTION}{_hint(name, known)}")


def _hint(name: str, known: Mapping[str, Place]) -> str:
    near = difflib.get_close_matches(name, {place.name for place in known.values()}, n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else "; see its documentation for their names"


@cache
def _package_folder() -> Path | None:
    spec = importlib.util.find_spec(PACKAGE)
    folders = list(spec.submodule_search_locations or []) if spec else []
    operators = [Path(folder) for folder in folders if Path(folder, "operators").is_dir()]
    return operators[0] if operators else None


@cache
def _known() -> Mapping[str, Place]:
    """The operators of the package by dotted path, as the `__init__` of each folder of them lists them."""
    folder = _package_folder()
    found: dict[str, Place] = {}
    for file in sorted(folder.glob("operators/*/__init__.py")) if folder else []:
        module = f"{OPERATORS}.{file.parent.name}"
        for name, source in _listed(file).items():
            if source.is_file():
                found[f"{module}.{name}"] = Place(module, name, source)
    return found


def known_operators() -> list[Place]:
    """The operators of the package, by dotted path."""
    return list(_known().values())


def parsed(file: Path) -> ast.Module:
    """The source of a module. What Python would warn of in it is not this reader's matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(file.read_text("utf-8"))


def _listed(file: Path) -> dict[str, Path]:
    """The classes that an `__init__` imports for type checkers, and the files in which they stand."""
    nodes = [
        inner
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in node.body
        if isinstance(inner, ast.ImportFrom) and inner.module
    ]
    return {
        alias.name: file.parent.joinpath(*node.module.split(".")).with_suffix(".py")
        for node in nodes
        if node.module
        for alias in node.names
    }


def module_file(module: str) -> Path | None:
    """The source file of a module, found without importing it; None where there is none."""
    top, *parts = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if not parts:
        file = Path(spec.origin or "")  # of a built-in or frozen module a word; a compiled one has no source
        return file if file.suffix == ".py" and file.is_file() else None
    for folder in spec.submodule_search_locations or []:
        path = Path(folder, *parts)
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return file
    return None
