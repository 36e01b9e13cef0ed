"""Finds the batch in which a row began, from its id, without reading the other batches."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from dataflow_assets.batch import ROW_ID
from dataflow_assets.errors import ConfigError
from dataflow_assets.io.step_folder import StepFolder
from dataflow_assets.pipeline.problems import near_names, shown
from dataflow_assets.pipeline_work import SOURCE, PipelineWork
from dataflow_assets.row_ids import origin_of, origins_of
from dataflow_assets.sources.manifest import ReadFile
from dataflow_assets.sources.naming import document_slug
from dataflow_assets.sources.spec import SourceSpec

_NEAR = 3
_MAX_DIGITS = 18
_BY_LINE = ("jsonl", "ndjson", "csv", "tsv", "txt")


class Home(NamedTuple):
    """Where a row began: the step that gave it its id (`source`, mostly) and the batch.

    `place` says in words which file of the source, and where in it; empty for a row that a step made.
    """

    step: str
    batch: str
    place: str = ""


def home_of(work: PipelineWork, row_id: str) -> Home:
    """Where the row began. At most a few batches are read, however many there are.

    Raises ConfigError, with ids that are near, where no row of the source or of a query has this id;
    MissingBatch where nothing was read yet.
    """
    files = work.known_manifest().files
    origin = origin_of(row_id)
    slug, _, number = origin.rpartition(":")
    for file in files:
        if (name := _name_in(file, slug)) is not None:
            return _home_in(work, file, name, origin)
    made = home_in_query(work, origin)
    if made is not None:
        return made
    known = [file.slug for file in files]
    near = near_names(slug, known) if number else ""
    raise ConfigError(
        f"pipeline {work.pipeline.name!r} has no row {shown(row_id)}: no source is called {shown(slug)}; "
        f"the ids of its rows begin with {_some(known)}{near}. `dataflow-assets sample` shows some"
    )


def places_of(work: PipelineWork, row_ids: Collection[str]) -> dict[str, str]:
    """For each row, in words, which file of the source it comes from and where in it."""
    wanted: dict[str, list[str]] = {}
    for row_id in row_ids:
        wanted.setdefault(origin_of(row_id).rpartition(":")[0], []).append(row_id)
    places = {}
    for file in work.known_manifest().files:
        names = {file.slug: file.name}
        if file.name not in file.states and not names.keys() >= wanted.keys():
            names |= {document_slug(name): name for name in file.states}
        for slug in names.keys() & wanted.keys():
            for row_id in wanted[slug]:
                places[row_id] = _place(work, file, names[slug], origin_of(row_id).rpartition(":")[2])
    return places


def home_in_query(work: PipelineWork, origin: str) -> Home | None:
    """Where a row began that a step made of many others, as a query does; None for no such row."""
    for step in work.pipeline.ordered_steps:
        if work.pipeline.operator(step).regroups:
            for key in moved_to(work, step.name, {origin}):
                return Home(step.name, key)
    return None


def moved_to(work: PipelineWork, step: str, origins: set[str]) -> list[str]:
    """The batches in which a step that moves rows has put those of these origins, in order.

    Reads nothing but the column of ids that the step's state keeps.
    """
    folder = work.layout.verdicts(work.pipeline.step_number(step))
    wanted = pa.array(sorted(origins), pa.large_string())
    return [
        key
        for key in work.known_manifest().batches
        if folder.record(key) is not None
        and pc.any(pc.is_in(origins_of(_ids_in_verdict(folder, key)), wanted)).as_py()
    ]


def _ids_in_verdict(folder: StepFolder, key: str) -> pa.ChunkedArray:
    return pq.read_table(folder.file_of(key), columns=[ROW_ID])[ROW_ID].cast(pa.large_string())


def _name_in(file: ReadFile, slug: str) -> str | None:
    """What the file, or the document of its group, with this slug is called; None for another's slug."""
    if re.search("-[0-9a-f]{16}$", slug) and file.name not in file.states:
        for name in file.states:
            if document_slug(name) == slug:
                return name
    return file.name if file.slug == slug else None


def _home_in(work: PipelineWork, file: ReadFile, name: str, origin: str) -> Home:
    number = origin.rpartition(":")[2]
    keys = list(file.batches) or work.known_manifest().batches
    folder = work.layout.step(0)
    if len(keys) > 1 and file.name in file.states:
        keys = list(_by_number(folder, keys, int(number))) if _is_number(number) else keys
    elif len(keys) > 1:
        keys = _by_distance(keys, _guess(folder, file, keys, name if name in file.states else number))
    near: list[str] = []
    for key in keys:
        ids = ids_in_source(folder, key)
        if origin in ids:
            return Home(SOURCE, key, _place(work, file, name, number))
        near += ids
    raise ConfigError(
        f"pipeline {work.pipeline.name!r} has no row {shown(origin)} from {name}; near it there "
        f"{_are(nearest(origin, near))}"
    )


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MAX_DIGITS


def _place(work: PipelineWork, file: ReadFile, name: str, number: str) -> str:
    if file.name in file.states:
        suffix = re.sub(r"[.](gz|zst)$", "", name).rpartition(".")[2]
        source = work.pipeline.source
        by_line = isinstance(source, SourceSpec) and (source.format or suffix) in _BY_LINE
        return f"{name}, {'line' if by_line else 'record'} {number}"
    if name in file.states:
        source = work.pipeline.source
        by_page = isinstance(source, SourceSpec) and source.by_page
        return f"{name}, {'page' if by_page else 'part'} {number}"
    return f"a file of {name}"


def ids_in_source(folder: StepFolder, key: str) -> list[str]:
    """The ids of the rows of a source's batch, and of its lines that were no rows."""
    record = folder.record(key)
    tables = [] if record is None else [folder.read(key, part, record) for part in ("kept", "rejected")]
    return [row_id for table in tables if table is not None for row_id in table[ROW_ID].to_pylist()]


def _by_number(folder: StepFolder, keys: Sequence[str], number: int) -> Iterator[str]:
    """The batches that are looked at for this record number: a binary search from a good first guess."""
    low, high = 0, len(keys) - 1
    place = _place_of_count(folder, keys, number)
    while low <= high:
        yield keys[place]
        found = [int(row_id.rpartition(":")[2]) for row_id in ids_in_source(folder, keys[place])]
        if not found or number > max(found):
            low = place + 1
        elif number < min(found):
            high = place - 1
        else:
            return
        place = (low + high) // 2


def _place_of_count(folder: StepFolder, keys: Sequence[str], number: int) -> int:
    """The place of the batch in which the record of this number is where each line is a record."""
    seen = 0
    for place, key in enumerate(keys):
        record = folder.record(key)
        seen += record.rows_in if record is not None else 0
        if seen >= number:
            return place
    return len(keys) - 1


def _guess(folder: StepFolder, file: ReadFile, keys: Sequence[str], known_as: str) -> int:
    """The place of the batch of a small file among many: they are read in the order of the manifest."""
    fits: Callable[[str], bool] = (
        (lambda name: name == known_as)
        if known_as in file.states
        else (lambda name: xxhash.xxh3_64_hexdigest(name.encode("utf-8", "surrogatepass")) == known_as)
    )
    place = next((place for place, name in enumerate(file.states) if fits(name)), 0)
    share = place / max(1, len(file.states))
    rows = sum(record.rows_in for key in keys if (record := folder.record(key)) is not None)
    return _place_of_count(folder, keys, int(share * rows) + 1)


def _by_distance(keys: Sequence[str], guess: int) -> list[str]:
    return [keys[place] for place in sorted(range(len(keys)), key=lambda place: abs(place - guess))]


def nearest(row_id: str, known: Sequence[str]) -> list[str]:
    """The ids nearest to one that is not there: those of the nearest numbers, else those spelled alike."""
    number = re.search(f"([0-9]{{1,{_MAX_DIGITS}}})$", row_id)
    stem = row_id[: number.start()] if number else row_id
    numbered = [each for each in known if each.startswith(stem) and _is_number(each[len(stem) :])]
    if number and numbered:
        wanted = int(number[1])
        return sorted(numbered, key=lambda each: abs(int(each[len(stem) :]) - wanted))[:_NEAR]
    return list(known[:_NEAR])


def _are(ids: Sequence[str]) -> str:
    if not ids:
        return "is no row"
    return f"{'are' if len(ids) > 1 else 'is'} {', '.join(map(shown, ids))}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(shown(f"{name}:") for name in names[:5]) + more
