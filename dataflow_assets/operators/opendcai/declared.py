"""What a class of open-dataflow says of itself, read from its source: nothing of it is imported.

Its modules import torch, vllm and others at the top, so that a mistake in a pipeline would cost seconds
to find, and could not be found at all where one of them is missing.
"""

import ast
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.opendcai.places import Place, parsed

_UNKNOWN = object()
_SERVING = "Serving"
_LABEL = "{self.__class__.__name__.lower()}_label"
HEAVY = frozenset(["torch", "transformers", "vllm", "sglang", "fasttext", "spacy", "sentence_transformers"])


class Argument(NamedTuple):
    """One argument of a method: whether it must be given, and its default where that is a plain value."""

    name: str
    required: bool
    default: object
    annotation: str


class Arguments(NamedTuple):
    """The arguments of a method by name; `any_name` is True where it takes others too."""

    named: Mapping[str, Argument]
    any_name: bool

    def problems(self, given: Mapping[str, object], what: str) -> list[str]:
        """What is wrong with the names that are given to it."""
        unknown = [] if self.any_name else [name for name in given if name not in self.named]
        missing = [each.name for each in self.named.values() if each.required and each.name not in given]
        known = ", ".join(self.named) or "none"
        return [
            *(f"{what} has no argument {name!r}; it has: {known}" for name in unknown),
            *(f"{what} needs the argument {name!r}" for name in missing),
        ]

    def values(self, given: Mapping[str, object]) -> dict[str, object]:
        """What each argument will be: what is given, else its default where that is a plain value."""
        defaults = {name: each.default for name, each in self.named.items() if each.default is not _UNKNOWN}
        return {**defaults, **given}


class Declared(NamedTuple):
    """A class: what its `__init__` and `run` take, and the packages that its module imports at the top.

    `label` is the column that its `run` writes where it is given no `output_key` and has no default for it.
    """

    place: Place
    init: Arguments
    run: Arguments
    imports: frozenset[str]
    label: str | None = None

    @property
    def servings(self) -> list[str]:
        """The arguments of `__init__` that are a serving."""
        return [each.name for each in self.init.named.values() if _is_serving(each)]

    @property
    def is_heavy(self) -> bool:
        """Whether it holds what a machine should hold once, as far as its imports say so."""
        return bool(self.imports & HEAVY)

    def missing_packages(self) -> list[str]:
        """The packages that its module imports at the top and that are not installed."""
        return sorted(name for name in self.imports if not _is_there(name))


def _is_serving(argument: Argument) -> bool:
    return _SERVING in argument.annotation or argument.name.endswith("llm_serving")


def declared(place: Place) -> Declared:
    """The class at this place. Raises ConfigError where there is none."""
    return _declared(place, place.file.stat().st_mtime_ns)


@cache
def _declared(place: Place, version: int) -> Declared:
    """`version` is the time of the file, so that an edited one is read again."""
    tree = parsed(place.file)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    if place.name not in classes:
        raise ConfigError(
            f"{place.module} has no class {place.name!r}; it has: {', '.join(classes) or 'none'}"
        )
    init = _method(classes, place.name, "__init__")
    run = _method(classes, place.name, "run")
    if run is None:
        raise ConfigError(f"{place.path} has no method `run`; expected an operator of open-dataflow")
    taken = Arguments({}, False) if init is None else _arguments(init, 1)
    if init is None and any(_name(base) not in ("OperatorABC", "ABC") for base in classes[place.name].bases):
        taken = Arguments({}, True)
    label = f"{place.name.lower()}_label" if _LABEL in ast.unparse(run) else None
    return Declared(place, taken, _arguments(run, 2), frozenset(_imports(tree)), label)


def _method(classes: Mapping[str, ast.ClassDef], name: str, method: str) -> ast.FunctionDef | None:
    """The method of the class, or of one above it in the same file."""
    for node in classes[name].body:
        if isinstance(node, ast.FunctionDef) and node.name == method:
            return node
    for base in classes[name].bases:
        above = _name(base)
        if above in classes and above != name and (found := _method(classes, above, method)) is not None:
            return found
    return None


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _arguments(method: ast.FunctionDef, skipped: int) -> Arguments:
    """The arguments behind the first ones: `self`, and `storage` of `run`."""
    given = method.args
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    pairs = [*zip(positional, defaults, strict=True)][skipped:]
    pairs += zip(given.kwonlyargs, given.kw_defaults, strict=True)
    named = {argument.arg: _argument(argument, default) for argument, default in pairs}
    named.pop("storage", None)
    return Arguments(named, given.kwarg is not None)


def _argument(argument: ast.arg, default: ast.expr | None) -> Argument:
    annotation = ast.unparse(argument.annotation) if argument.annotation is not None else ""
    if default is None:
        return Argument(argument.arg, True, _UNKNOWN, annotation)
    try:
        value = ast.literal_eval(default)
    except (ValueError, TypeError, SyntaxError):
        value = _UNKNOWN
    return Argument(argument.arg, False, value, annotation)


def _imports(tree: ast.Module) -> Iterator[str]:
    """The packages that are imported when the module is, open-dataflow and the standard library left out."""
    for node in tree.body:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [node.module]
        for name in names:
            package = name.partition(".")[0]
            if package != "dataflow" and package not in sys.stdlib_module_names:
                yield package


@cache
def _is_there(package: str) -> bool:
    return package in sys.modules or importlib.util.find_spec(package) is not None
