"""What pipelines wrote, which a source that covers their root must not take for data.

A folder with commit records is a step's. It is left out, and so is what is beside it of the same pipeline:
its single file, where it has no batches, and the notes on what was read. A path into the folder reads it.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable
from functools import cache
from pathlib import Path

from dataflow_assets.io.formats import EXTENSIONS
from dataflow_assets.io.layout import MANIFEST, READING
from dataflow_assets.io.step_folder import COMMITS

_NOTES = {MANIFEST, READING}
_FILES = tuple(f".{ending}" for ending in EXTENSIONS.values())
_STEP = re.compile(r"_step[0-9]+$")


def is_step_folder(folder: Path) -> bool:
    """Whether batches were committed in the folder, or were about to be."""
    return os.path.isdir(folder / COMMITS)


def without_outputs(
    parent: Path, folders: Iterable[str], names: Iterable[str]
) -> tuple[list[str], list[str]]:
    """The folders and files of one folder that no pipeline wrote."""
    folders = list(folders)
    steps = {name for name in folders if is_step_folder(parent / name)}
    others = [name for name in folders if name not in steps]
    return others, [name for name in names if not _is_beside(name, steps)]


def spells_a_step(pattern: str) -> bool:
    """Whether a glob names steps, as `data/*/*_step3/*.jsonl` does: it reads them on purpose."""
    return "_step" in pattern


class OutputsBelow:
    """Says of a file below `root` whether a pipeline wrote it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._is_step = cache(is_step_folder)

    def __call__(self, path: Path) -> bool:
        """Whether it is in a step's folder, or beside one and of its pipeline."""
        parts = path.relative_to(self._root).parts
        if any(self._is_step(self._root.joinpath(*parts[:depth])) for depth in range(1, len(parts))):
            return True
        if path.name in _NOTES:
            return any(map(self._is_step, path.parent.iterdir()))
        return path.suffix in _FILES and is_step_folder(path.with_suffix(""))


def remote_outputs(root: str, names: Iterable[str]) -> set[str]:
    """Which of all the objects below `root` a pipeline wrote."""
    names = list(names)
    records = f"/{COMMITS}/"
    steps = {name.partition(records)[0] for name in names if records in name}
    return _of_steps({step for step in steps if step.startswith(f"{root}/")}, names)


def outputs_among(root: str, names: Iterable[str], has_records: Callable[[str], bool]) -> set[str]:
    """The same for objects that a glob found; those called like a step are asked for records."""
    names = list(names)
    places = {place for name in names for place in (*_above(name), name.rpartition(".")[0])}
    named = {place for place in places if place.startswith(f"{root}/") and _STEP.search(place)}
    return _of_steps({place for place in named if has_records(f"{place}/{COMMITS}")}, names)


def _of_steps(steps: set[str], names: Iterable[str]) -> set[str]:
    inside: dict[str, set[str]] = {}
    for step in steps:
        parent, _, folder = step.rpartition("/")
        inside.setdefault(parent, set()).add(folder)
    found = set()
    for name in names:
        parent, _, file = name.rpartition("/")
        if not steps.isdisjoint(_above(name)) or _is_beside(file, inside.get(parent, ())):
            found.add(name)
    return found


def _above(name: str) -> list[str]:
    """The folders that an object is in, as they are named."""
    return [name[: found.start()] for found in re.finditer("/", name)]


def _is_beside(name: str, steps: Collection[str]) -> bool:
    """Whether a file beside these folders of steps is of their pipeline."""
    stem, dot, ending = name.rpartition(".")
    return bool(steps) and (name in _NOTES or (stem in steps and f"{dot}{ending}" in _FILES))
