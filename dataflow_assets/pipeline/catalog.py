"""Every pipeline that is known by name: shipped, of the folders in DATAFLOW_PIPELINES, or registered."""

import os
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from dataflow_assets.errors import ConfigError, DataflowError
from dataflow_assets.fingerprints import operator_fingerprint
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.file import SUFFIXES, load_pipeline
from dataflow_assets.pipeline.names import SOURCE, identifier
from dataflow_assets.pipeline.problems import listed, near_names, printable, shown

FOLDERS_VARIABLE = "DATAFLOW_PIPELINES"


class _Registered(NamedTuple):
    pipeline: Pipeline
    place: str


class _Catalog(NamedTuple):
    """The pipelines and their places by name; mistakes in files; names that several places have."""

    pipelines: dict[str, Pipeline]
    places: dict[str, str]
    problems: list[str]
    clashes: dict[str, str]


_registered: dict[str, _Registered] = {}


def register_pipeline(pipeline: Pipeline, *, replace: bool = False) -> Pipeline:
    """Makes a pipeline that was built in Python known by its name.

    An equal pipeline may be registered again; another one of the name raises ConfigError, unless
    `replace` is given (for a notebook).
    """
    caller = sys._getframe(1)
    place = f"{caller.f_code.co_filename}:{caller.f_lineno}"
    known = _registered.get(pipeline.name)
    if known is not None and known.pipeline != pipeline and not replace:
        raise ConfigError(_clash(pipeline.name, known.place, place))
    _registered[pipeline.name] = _Registered(pipeline, place)
    return pipeline


def _clash(name: str, first: str, second: str) -> str:
    places = printable(f"{first} and {second}")
    return f"two pipelines are called {name!r}: {places}; give one of them another name"


def catalog() -> dict[str, Pipeline]:
    """All pipelines, sorted by name. Raises ConfigError with the mistakes of all files together."""
    pipelines, problems = usable()
    if problems:
        raise ConfigError(problems)
    return pipelines


def usable() -> tuple[dict[str, Pipeline], list[str]]:
    """The pipelines without mistakes, sorted by name, and the mistakes of the others.

    Of several that have one name, here or in Dagster, none is usable.
    """
    found = _gathered()
    same = _same_to_dagster(found)
    unknown = _without_fingerprint(found)
    left_out = {*found.clashes, *unknown, *(name for pair in same for name in pair)}
    pipelines = {name: pipeline for name, pipeline in found.pipelines.items() if name not in left_out}
    told = [*found.clashes.values(), *same.values(), *unknown.values()]
    return dict(sorted(pipelines.items())), [*found.problems, *told]


def find_pipeline(name_or_path: str) -> Pipeline:
    """The pipeline of this name, or of this file: what ends in .yaml, .yml or .json, or is a path to one.

    Mistakes in other files of the catalog do not matter to a name that is found.
    """
    path = Path(name_or_path)
    if path.suffix.lower() in SUFFIXES or len(path.parts) > 1:
        return load_pipeline(path)
    found = _gathered()
    if name_or_path in found.clashes:
        raise ConfigError(found.clashes[name_or_path])
    if name_or_path in found.pipelines:
        return found.pipelines[name_or_path]
    if os.path.isfile(path):
        return load_pipeline(path)
    known = listed(sorted(found.pipelines))
    hint = near_names(name_or_path, found.pipelines)
    missing = f"there is no pipeline {shown(name_or_path)} (known by name: {known}){hint}"
    raise ConfigError([missing, *found.problems])


def place_of_known(name: str) -> str | None:
    """Where a pipeline is that has this name, or one that Dagster takes for the same; None without one."""
    places = _gathered().places
    return next((place for known, place in places.items() if identifier(known) == identifier(name)), None)


def _gathered() -> _Catalog:
    found = _Catalog({}, {}, [], {})
    for file in _pipeline_files(found.problems):
        try:
            _add(found, load_pipeline(file), str(file))
        except ConfigError as error:
            found.problems.extend(error.problems)
    for registered in _registered.values():
        _add(found, registered.pipeline, registered.place)
    return found


def _add(found: _Catalog, pipeline: Pipeline, place: str) -> None:
    first = found.places.setdefault(pipeline.name, place)
    if first != place:
        found.clashes.setdefault(pipeline.name, _clash(pipeline.name, first, place))
    found.pipelines.setdefault(pipeline.name, pipeline)


def _without_fingerprint(found: _Catalog) -> dict[str, str]:
    """The mistake of each pipeline with an operator that raises when it is asked what decides its result."""
    problems: dict[str, str] = {}
    for name, pipeline in found.pipelines.items():
        for step in pipeline.steps:
            try:
                operator_fingerprint(pipeline.operator(step))
            except DataflowError as error:
                problems.setdefault(name, f"{pipeline.place(step)}: {pipeline.redacted(str(error))}")
    return problems


def _same_to_dagster(found: _Catalog) -> dict[tuple[str, str], str]:
    """The mistake of two pipelines with assets of one name to Dagster: it takes `a-b/c` for `a_b__c`."""
    problems: dict[tuple[str, str], str] = {}
    owners: dict[str, tuple[str, str]] = {}
    for name, pipeline in sorted(found.pipelines.items()):
        for asset in (SOURCE, *(step.name for step in pipeline.steps)):
            told, own = identifier(f"{name}__{asset}"), f"{name}/{asset}"
            owner, other = owners.setdefault(told, (name, own))
            if owner != name:
                places = printable(f"{found.places[owner]} and {found.places[name]}")
                message = f"{other!r} and {own!r} have one name in Dagster, {told!r}: {places}; rename one"
                problems.setdefault((owner, name), message)
    return problems


# Files of Dagster that `init` and its own commands put beside pipelines.
_OF_DAGSTER = ("workspace.yaml", "dagster.yaml", "dagster_cloud.yaml")


def _pipeline_files(problems: list[str]) -> Iterator[Path]:
    """The files of the shipped folder and of the user's, each once."""
    seen: set[Path] = set()
    for folder in [Path(str(files("dataflow_assets") / "pipelines")), *_user_folders()]:
        try:
            paths = sorted(folder.iterdir())
        except OSError as error:
            problems.append(
                f"{FOLDERS_VARIABLE}: the folder {printable(str(folder))} cannot be read: {error.strerror}"
            )
            continue
        for path in paths:
            if (
                path.suffix.lower() in SUFFIXES
                and not path.name.startswith(".")
                and path.name not in _OF_DAGSTER
                and path.resolve() not in seen
            ):
                seen.add(path.resolve())
                yield path


def _user_folders() -> list[Path]:
    named = os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep)
    return [Path(folder).expanduser() for folder in named if folder]
