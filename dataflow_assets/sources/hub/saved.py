"""A data set that `save_to_disk` wrote: its Arrow files, read as streams and not mapped into memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from dataflow_assets.errors import SourceError
from dataflow_assets.sources.arrow_rows import checked_names, chunk_of_arrow
from dataflow_assets.sources.chunk import BrokenInput, Chunk
from dataflow_assets.sources.hub.features import refuse_media, with_class_names
from dataflow_assets.sources.hub.spec import HubSource
from dataflow_assets.sources.hub.splits import chosen_split
from dataflow_assets.sources.local_piece import LocalPiece
from dataflow_assets.sources.naming import unique_slugs
from dataflow_assets.sources.piece import Found

_STATE, _SPLITS, _INFO = "state.json", "dataset_dict.json", "dataset_info.json"


class SavedPiece(LocalPiece):
    """One Arrow file of a saved data set."""

    def __init__(self, file: Path, name: str, slug: str, features: dict[str, Any], spec: HubSource) -> None:
        self.name, self.slug = name, slug
        self._file, self._features, self._spec = file, features, spec

    def paths(self) -> dict[str, Path]:
        """The Arrow file, and the one that says what its columns mean."""
        return {self.name: self._file, _INFO: self._file.parent / _INFO}

    def chunks(self, chunk_bytes: int) -> Iterator[Chunk]:
        """The rows in order, a record batch or less at a time."""
        try:
            with pa.OSFile(str(self._file)) as file, pa.ipc.open_stream(file) as batches:
                yield from self._of_batches(batches, chunk_bytes)
        except (pa.ArrowException, OSError) as error:
            raise BrokenInput(
                f"source {self.name}: {str(error).splitlines()[0]}; expected a whole Arrow file. Save the "
                "data set again"
            ) from error

    def _of_batches(self, batches: pa.RecordBatchReader, chunk_bytes: int) -> Iterator[Chunk]:
        names = None
        first = 1
        for whole in batches:
            batch = with_class_names(whole, self._features) if self._spec.class_labels == "name" else whole
            if names is None:
                refuse_media(self._features, self._spec.columns or batch.schema.names, self.name)
                names = checked_names(batch.schema, self.name, self._spec)
            rows = max(1, batch.num_rows * chunk_bytes // max(1, batch.nbytes))
            for start in range(0, batch.num_rows, rows):
                part = batch.slice(start, rows)
                yield chunk_of_arrow(part, names, self.name, first)
                first += part.num_rows


def is_saved(folder: Path) -> bool:
    """Whether `save_to_disk` wrote this folder."""
    return (folder / _SPLITS).is_file() or (folder / _STATE).is_file()


def saved_pieces(spec: HubSource, folder: Path) -> Found:
    """The Arrow files of the data set, in their order. Raises SourceError."""
    name, config, split = spec.dataset
    if config is not None:
        raise SourceError(
            f"source hf:{name}: a data set that was saved to disk has no config {config!r}; "
            f"expected hf:{name} or hf:{name}::{split or 'train'}"
        )
    label = Path(name).name or folder.resolve().name
    if (folder / _SPLITS).is_file():
        chosen = chosen_split(split, _json(folder / _SPLITS).get("splits") or [], name)
        folder, label = folder / chosen, f"{label}-{chosen}"
    elif split is not None:
        chosen_split(split, [str(_json(folder / _STATE).get("_split") or "all")], name)
    files = [entry["filename"] for entry in _json(folder / _STATE).get("_data_files") or []]
    features = _json(folder / _INFO).get("features") or {}
    names = [f"{label}/{file}" for file in files]
    slugs = unique_slugs((f"{label}-{number:05d}", name) for number, name in enumerate(names))
    return Found(
        [
            SavedPiece(folder / file, name, slug, features, spec)
            for file, name, slug in zip(files, names, slugs, strict=True)
        ],
        [],
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise SourceError(
            f"source {path}: {error}; expected a folder that `save_to_disk` wrote. Save the data set again"
        ) from error
    if not isinstance(found, dict):
        raise SourceError(f"source {path}: expected an object, found {type(found).__name__}")
    return found
