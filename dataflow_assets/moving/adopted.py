"""The fields of a pipeline that goes on where DataFlow ended, and what a person should know of it."""

from pathlib import Path
from typing import NamedTuple, cast

from dataflow_assets.errors import ConfigError
from dataflow_assets.moving.cache_folder import CacheFolder, StepFile, read_cache_folder
from dataflow_assets.moving.pipeline_file import Fields, convert
from dataflow_assets.operators.registry import build_operator

_BATCH_ROWS = 10_000
# A step that changes nothing, to be replaced by what shall come next.
_PLACEHOLDER: Fields = {"name": "next", "type": "sample", "params": {"share": 1.0}}


class Adopted(NamedTuple):
    """The fields of the pipeline, its source as a path from the working folder, and what is said of it."""

    fields: Fields
    notes: list[str]


def adopted_cache(folder: Path, prefix: str | None, step: int | None) -> Adopted:
    """A pipeline that reads on from a step of a cache folder. Raises ConfigError."""
    cache = read_cache_folder(folder, prefix)
    file = cache.whole(step)
    name = "".join(
        each if each in "abcdefghijklmnopqrstuvwxyz0123456789_-" else "-" for each in cache.prefix.lower()
    )
    fields: Fields = {
        "name": name.strip("_-")[:64] or "adopted",
        "source": {"path": str(file.path)},
        "batch_rows": _BATCH_ROWS,
        "steps": [_PLACEHOLDER],
    }
    return Adopted(fields, [*_told(cache, file), "its one step changes nothing: put yours in its place"])


def adopted_file(
    file: Path, class_name: str | None, prefix: str | None, step: int | None, from_cache: bool
) -> Adopted:
    """The pipeline of a file, from its first step or from what its cache folder holds. Raises ConfigError."""
    found = convert(file, class_name)
    steps = cast("list[Fields]", found.fields["steps"])
    notes = list(found.notes)
    source = cast(Fields, found.fields["source"])
    if "path" in source:
        source["path"] = str(file.parent / str(source["path"]))
    fields = dict(found.fields)
    if from_cache or step is not None:
        assert found.cache is not None
        cache = read_cache_folder(file.parent / found.cache[0], prefix or found.cache[1])
        done = cache.whole(step)
        if done.step >= len(steps):
            raise ConfigError(
                f"{cache.path} holds step {done.step}, the last of {len(steps)}: nothing is left to do"
            )
        notes += _told(cache, done)
        fields |= {"source": {"path": str(done.path)}, "steps": steps[done.step :]}
    whole = [step["name"] for step in cast("list[Fields]", fields["steps"]) if _needs_all_rows(step)]
    if whole:
        notes.append(
            f"{', '.join(map(str, whole))} looks at all rows, so `batch_rows` is null: one batch, as in "
            "DataFlow. With an operator of ours in its place (`operators` lists them) batches can be small"
        )
    placed = {"batch_rows": None if whole else _BATCH_ROWS}
    ordered = {"name": fields.pop("name"), "source": fields.pop("source"), **placed, **fields}
    return Adopted(ordered, notes)


def _needs_all_rows(step: Fields) -> bool:
    return build_operator(str(step["type"]), cast(Fields, step["params"])).needs_all_rows


def _told(cache: CacheFolder, chosen: StepFile) -> list[str]:
    """What is known of each step of the cache."""
    lines = []
    for file in cache.files:
        word = file.problem or "whole, as far as its end shows"
        lines.append(f"{file.path.name}: {word}{' <- read on from here' if file is chosen else ''}")
    return lines
