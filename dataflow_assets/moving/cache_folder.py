"""What a cache folder holds that DataFlow wrote, and which of its steps is whole.

Its storages write `<prefix>_step<N>.<ext>`, each file in place and not atomically. A pipeline in batches
(`BatchedPipelineABC`) appends to one file a step, and notes after each batch `<step>,<batches>` in
`<prefix>_last_success_step.txt`: so many steps are done, and so many batches of the next one. A kill between
the two leaves rows in the file that its note does not count, which DataFlow doubles when it goes on.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dataflow_assets.errors import ConfigError

FORMATS = ("jsonl", "json", "csv", "parquet", "pickle")
_STEP = re.compile(rf"(?P<prefix>.+)_step(?P<step>[0-9]+)\.(?P<format>{'|'.join(FORMATS)})")
_NOTE = "_last_success_step.txt"
_TAIL_BYTES = 1 << 16


class StepFile(NamedTuple):
    """One step's file; `problem` says why its rows cannot be relied on, empty where they can."""

    step: int
    path: Path
    format: str
    problem: str


class CacheFolder(NamedTuple):
    """The step files of one prefix, by step."""

    path: Path
    prefix: str
    files: Sequence[StepFile]

    def whole(self, step: int | None = None) -> StepFile:
        """The file of this step, by default of the last whole one. Raises ConfigError with the reasons."""
        found = {file.step: file for file in self.files}
        if step is not None and step not in found:
            steps = ", ".join(map(str, found))
            raise ConfigError(f"{self.path} has no step {step} of {self.prefix!r}; it has {steps}")
        wanted = [found[step]] if step is not None else [*reversed(self.files)]
        for file in wanted:
            if not file.problem:
                return file
        problems = [f"{file.path.name}: {file.problem}" for file in wanted]
        raise ConfigError([f"{self.path} has no step that can be read on from", *problems])


def read_cache_folder(folder: Path, prefix: str | None = None) -> CacheFolder:
    """The steps of this prefix, of the only one where none is said. Raises ConfigError."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder; expected the cache folder of a DataFlow pipeline")
    found: dict[str, list[tuple[int, Path, str]]] = {}
    for path in sorted(folder.iterdir()):
        match = _STEP.fullmatch(path.name)
        if match is not None and path.is_file():
            found.setdefault(match["prefix"], []).append((int(match["step"]), path, match["format"]))
    if not found:
        raise ConfigError(
            f"{folder} has no file <prefix>_step<N>.<{'|'.join(FORMATS)}>; expected those of DataFlow"
        )
    if prefix is None and len(found) > 1:
        raise ConfigError(f"{folder} has the steps of {', '.join(map(repr, found))}; say which by --prefix")
    chosen = next(iter(found)) if prefix is None else prefix
    if chosen not in found:
        raise ConfigError(
            f"{folder} has no steps of {chosen!r}; it has those of {', '.join(map(repr, found))}"
        )
    return CacheFolder(folder, chosen, _judged(folder, chosen, sorted(found[chosen])))


def _judged(folder: Path, prefix: str, found: Sequence[tuple[int, Path, str]]) -> list[StepFile]:
    twice = {step for step, _, _ in found if [other for other, _, _ in found].count(step) > 1}
    done = _steps_done(folder / f"{prefix}{_NOTE}")
    files = []
    for step, path, format in found:
        problem = _torn(path, format)
        if step in twice:
            problem = (
                f"step {step} is there in several formats; nobody can say which is newer, remove the others"
            )
        elif done is not None and step > done.steps:
            problem = (
                f"{done.file} says that {done.steps} steps are done and {done.batches} batches of the next; "
                "rows of an unfinished step may be missing or there twice"
            )
        files.append(StepFile(step, path, format, problem))
    return files


class _Done(NamedTuple):
    file: str
    steps: int
    batches: int


def _steps_done(note: Path) -> _Done | None:
    """What a pipeline in batches noted last; None where there is no note. Raises ConfigError."""
    try:
        text = note.read_text("utf-8").strip()
    except FileNotFoundError:
        return None
    match = re.fullmatch(r"([0-9]+),([0-9]+)", text)
    if match is None:
        raise ConfigError(
            f"{note} holds {text!r:.60}, expected `<step>,<batches>`: a process died when it was written. "
            "Remove it, and say by --step which step you trust"
        )
    return _Done(note.name, int(match[1]), int(match[2]))


def _torn(path: Path, format: str) -> str:
    """Why a file ends where no whole file ends; empty where that cannot be seen, or is not so."""
    if format == "pickle":
        return "a pickle file runs code when it is read; write it as Parquet by pandas and put that here"
    if not path.stat().st_size:
        return "it is empty"
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        tail = file.read()
    if format == "parquet":
        return "" if tail.endswith(b"PAR1") else "it does not end as a Parquet file: its writing was cut off"
    if format == "json":
        return "" if tail.rstrip().endswith(b"]") else "it does not end in `]`: its writing was cut off"
    last = tail.rstrip(b"\n").rpartition(b"\n")[2]
    if format == "jsonl" and len(last) < _TAIL_BYTES and not _is_json(last):
        return "its last line is no JSON: its writing was cut off"
    return (
        ""
        if format == "jsonl" or tail.endswith(b"\n")
        else "its last line does not end: its writing was cut off"
    )


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
