"""Which operators there are: registered by decorator, by entry point, or named by dotted path."""

import difflib
import importlib
import pkgutil
import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.operator import Operator

ENTRY_POINT_GROUP = "dataflow_assets.operators"
_NAME = re.compile(r'^    name = "(\w+)"$', re.MULTILINE)
_registered: dict[str, type[Operator]] = {}
OperatorClass = TypeVar("OperatorClass", bound=type[Operator])


def register(operator: OperatorClass) -> OperatorClass:
    """Makes an operator class known by its `name`. Raises ConfigError if another class has the name."""
    known = _registered.get(operator.name)
    if known is not None and _path(known) != _path(operator):
        raise ConfigError(f"two operators are called {operator.name!r}: {_path(known)} and {_path(operator)}")
    _registered[operator.name] = operator
    return operator


def _path(operator: type[Operator]) -> str:
    return f"{operator.__module__}.{operator.__qualname__}"


@cache
def _load_entry_points() -> None:
    """Registers the operators of other packages, once a process."""
    for point in entry_points(group=ENTRY_POINT_GROUP):
        loaded = point.load()
        if isinstance(loaded, type) and issubclass(loaded, Operator):
            register(loaded)


@cache
def _load_package() -> None:
    """Imports all modules with operators of this package, once a process."""
    package = importlib.import_module("dataflow_assets.operators")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


@cache
def _modules_by_name() -> Mapping[str, str]:
    """The module of this package that defines an operator, by the operator's name, read from the sources.

    Importing all modules takes a third of a second, and a pipeline needs a few.
    """
    package = Path(__file__).parent
    return {
        name: ".".join(["dataflow_assets.operators", *path.relative_to(package).with_suffix("").parts])
        for path in package.rglob("*.py")
        for name in _NAME.findall(path.read_text("utf-8"))
    }


def operators() -> Mapping[str, type[Operator]]:
    """Every operator that is known by name, sorted by name."""
    _load_package()
    _load_entry_points()
    return dict(sorted(_registered.items()))


def find_operator(name: str) -> type[Operator]:
    """The operator class of this name, or of the path `package.module:Class`.

    Raises ConfigError, with the nearest names, where there is none.
    """
    if ":" in name:
        return _imported(name)
    _load_entry_points()
    if name in (modules := _modules_by_name()):
        importlib.import_module(modules[name])  # where an entry point has the name too, this refuses it
    if name in _registered:
        return _registered[name]
    known = operators()
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else "`dataflow-assets operators` lists them"
    raise ConfigError(f"there is no operator {name!r}; {hint}")


def _imported(path: str) -> type[Operator]:
    loaded = import_object(path)
    if not (isinstance(loaded, type) and issubclass(loaded, Operator)):
        raise ConfigError(f"{path!r} is a {type(loaded).__name__}, expected an Operator class")
    return loaded


def import_object(path: str) -> object:
    """The object at `package.module:name`. Raises ConfigError that says which part is missing."""
    module_name, _, attribute = path.partition(":")
    if not module_name or not attribute or module_name.startswith("."):
        raise ConfigError(f"{path!r} is no path to Python code; expected `package.module:name`")
    try:
        loaded = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(f"module {module_name!r} of {path!r} cannot be imported: {error}") from error
    for part in attribute.split("."):
        if not hasattr(loaded, part):
            raise ConfigError(f"module {module_name!r} has no {attribute!r} (asked for by {path!r})")
        loaded = getattr(loaded, part)
    return loaded


def build_operator(name: str, params: Mapping[str, object], base_dir: Path | None = None) -> Operator:
    """An operator with checked parameters. Raises ConfigError with one line for each mistake.

    Files that the parameters name are relative to `base_dir`, by default the working folder.
    """
    operator = find_operator(name)
    try:
        context = {"base_dir": base_dir or Path.cwd()}
        return operator(operator.Params.model_validate(dict(params), context=context))
    except ValidationError as error:
        raise ConfigError(_lines(name, operator, error)) from error


def _lines(name: str, operator: type[Operator], error: ValidationError) -> list[str]:
    lines = []
    for problem in error.errors(include_url=False):
        where = ".".join(map(str, problem["loc"])) or "params"
        if problem["type"] == "extra_forbidden":
            known = ", ".join(operator.Params.model_fields)
            lines.append(f"operator {name!r} has no parameter {where!r}; it has: {known}")
        elif problem["type"] == "missing":
            lines.append(f"operator {name!r} needs the parameter {where!r}")
        else:
            message = problem["msg"].removeprefix("Value error, ")
            found = f" (found {problem['input']!r})" if problem["loc"] else ""
            lines.append(f"operator {name!r}, parameter {where!r}: {message}{found}")
    return lines
