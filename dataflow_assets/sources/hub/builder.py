"""A folder of data files, or a data set of the Hub, as `datasets` finds it: its splits, files and features.

Files of plain formats are read by this package's own readers: every value is exact, and a large row
group is not held in memory. Whatever else `datasets` can read is streamed by it, shard by shard.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import orjson
import pyarrow as pa

from dataflow_assets.errors import SourceError
from dataflow_assets.optional_packages import require
from dataflow_assets.pipeline.problems import shortened
from dataflow_assets.sources.arrow_rows import checked_names, chunk_of_arrow
from dataflow_assets.sources.chunk import BrokenInput, Chunk
from dataflow_assets.sources.discovery import SourceFile, display_name, kind_of
from dataflow_assets.sources.file_pieces import FilePiece
from dataflow_assets.sources.hub.features import refuse_media, with_class_names
from dataflow_assets.sources.hub.spec import HubSource
from dataflow_assets.sources.hub.splits import chosen_split
from dataflow_assets.sources.local_piece import LocalPiece
from dataflow_assets.sources.naming import unique_slugs
from dataflow_assets.sources.parquet import read_parquet
from dataflow_assets.sources.piece import Found
from dataflow_assets.sources.readers import read_file
from dataflow_assets.sources.spec import FileFormat, SourceSpec

if TYPE_CHECKING:
    from datasets import DatasetBuilder, Features, IterableDataset

_BATCH_ROWS = 1_000
_PLAIN: dict[str, tuple[FileFormat, ...]] = {
    "parquet": ("parquet",),
    "json": ("jsonl", "json"),
    "csv": ("csv",),
    "text": ("txt",),
}
_SAYS_NOTHING_OF_READING = {"name", "version", "data_dir", "data_files", "description", "features"}


def folder_pieces(spec: HubSource, folder: Path) -> Found:
    """The data files of a local folder, a piece each. Raises SourceError, ConfigError."""
    builder = dataset_builder(spec, str(folder.resolve()))
    split, files = chosen_files(builder, spec)
    paths = [Path(file) for file in files]
    names = [f"{_label(folder)}/{display_name(os.path.relpath(path, folder.resolve()))}" for path in paths]
    features = features_of(builder)
    if plain_format(builder, files):
        return Found(_file_pieces(paths, names, features, spec), [])
    dataset = streamed(builder, split, spec)
    slugs = unique_slugs((f"{_label(folder)}-{split}-{shard:05d}", split) for shard in range(len(paths)))
    if dataset.num_shards == len(paths):
        return Found(
            [
                StreamedPiece(dataset, shard, {name: path}, name, slug, spec)
                for shard, (name, path, slug) in enumerate(zip(names, paths, slugs, strict=True))
            ],
            [],
        )
    name = f"{_label(folder)}/{split}"
    whole = StreamedPiece(dataset, None, dict(zip(names, paths, strict=True)), name, slugs[0], spec)
    return Found([whole], [])


def dataset_builder(spec: HubSource, path: str, revision: str | None = None) -> "DatasetBuilder":
    """What `datasets` makes of this name or folder. Raises SourceError, ConfigError."""
    require({"datasets": "hub"}, "source `hf`")
    from datasets import disable_progress_bars, load_dataset_builder

    disable_progress_bars()
    with _as_source_error(spec):
        return load_dataset_builder(path, spec.dataset.config, revision=revision)


def chosen_files(builder: "DatasetBuilder", spec: HubSource) -> tuple[str, list[str]]:
    """The split that is read, and its data files, by path or URL. Raises SourceError."""
    by_split = {
        str(split): list(map(str, files)) for split, files in (builder.config.data_files or {}).items()
    }
    split = chosen_split(spec.dataset.split, list(by_split), spec.dataset.name)
    return split, by_split[split]


def plain_format(builder: "DatasetBuilder", files: list[str]) -> bool:
    """Whether this package's readers read the files as the data set means them."""
    formats = _PLAIN.get(type(builder).__module__.rpartition(".")[2])
    if formats is None or any(kind_of(file)[0] not in formats for file in files):
        return False
    declared = builder.config.features or builder.info.features  # type: ignore[attr-defined]
    return formats == ("parquet",) or (
        declared is None and _settings(builder.config) == _settings(type(builder.config)())
    )


def _settings(config: Any) -> dict[str, Any]:
    return {
        each.name: getattr(config, each.name)
        for each in fields(config)
        if each.name not in _SAYS_NOTHING_OF_READING
    }


def features_of(builder: "DatasetBuilder") -> dict[str, Any]:
    """The features that the data set declares, as JSON has them; {} for none."""
    return _as_json(builder.info.features)


def _as_json(features: "Features | None") -> dict[str, Any]:
    return cast("dict[str, Any]", features.to_dict()) if features is not None else {}


def _label(folder: Path) -> str:
    return display_name(folder.name or folder.resolve().name)


def file_spec(spec: HubSource) -> SourceSpec:
    """How the data files are read by our readers."""
    return SourceSpec(
        path="of the data set", columns=spec.columns, rename=spec.rename, on_bad_line=spec.on_bad_line
    )


def _file_pieces(
    paths: list[Path], names: list[str], features: dict[str, Any], spec: HubSource
) -> list["DataFilePiece"]:
    slugs = unique_slugs((path.name.partition(".")[0], name) for path, name in zip(paths, names, strict=True))
    pieces = []
    for path, name, slug in zip(paths, names, slugs, strict=True):
        kind, compression = kind_of(path.name)
        assert kind is not None
        pieces.append(DataFilePiece(SourceFile(path, name, slug, kind, compression), features, spec))
    return pieces


class DataFilePiece(FilePiece):
    """A data file in a format of which nothing is guessed."""

    def __init__(self, file: SourceFile, features: dict[str, Any], spec: HubSource) -> None:
        super().__init__(file, file_spec(spec))
        self._features, self._hub_spec = features, spec

    def chunks(self, chunk_bytes: int) -> Iterator[Chunk]:
        """The rows in order."""
        return data_file_chunks(self.file, chunk_bytes, self._features, self._hub_spec)


def data_file_chunks(
    file: SourceFile, chunk_bytes: int, features: dict[str, Any], spec: HubSource
) -> Iterator[Chunk]:
    """The rows of a local data file in order; its features are those of the data set, else its own."""
    if file.format != "parquet":
        return read_file(file, file_spec(spec), chunk_bytes)

    def changed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        return with_class_names(batch, features or features_in(schema)) if by_name else batch

    by_name = spec.class_labels == "name"
    return read_parquet(file, spec, chunk_bytes, changed)


def features_in(schema: pa.Schema) -> Mapping[str, Any]:
    """The features that `datasets` wrote into the file."""
    try:
        told = orjson.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        return dict(told["info"]["features"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return {}


class StreamedPiece(LocalPiece):
    """A shard of what `datasets` streams; all shards where `shard` is None."""

    def __init__(
        self,
        dataset: "IterableDataset",
        shard: int | None,
        files: dict[str, Path],
        name: str,
        slug: str,
        spec: HubSource,
    ) -> None:
        self.name, self.slug = name, slug
        self._dataset, self._shard, self._files, self._spec = dataset, shard, files, spec

    def paths(self) -> dict[str, Path]:
        """The data files that the rows are in."""
        return self._files

    def chunks(self, chunk_bytes: int) -> Iterator[Chunk]:
        """The rows in order, 1,000 at once."""
        return streamed_chunks(self._dataset, self._shard, self.name, self._spec)


def streamed(builder: "DatasetBuilder", split: str, spec: HubSource) -> "IterableDataset":
    """The split as a stream. Raises SourceError."""
    with _as_source_error(spec):
        return builder.as_streaming_dataset(split)  # type: ignore[return-value]


def streamed_chunks(
    dataset: "IterableDataset", shard: int | None, piece: str, spec: HubSource
) -> Iterator[Chunk]:
    """The rows of a shard in order, 1,000 at once."""
    part = dataset if shard is None else dataset.shard(dataset.num_shards, shard, contiguous=True)
    features = _as_json(part.features)
    refuse_media(features, spec.columns or features, piece)
    first = 1
    for table in _tables(part, piece):
        for whole in table.combine_chunks().to_batches():
            batch = with_class_names(whole, features) if spec.class_labels == "name" else whole
            yield chunk_of_arrow(batch, checked_names(batch.schema, piece, spec), piece, first)
            first += batch.num_rows


def _tables(part: "IterableDataset", piece: str) -> Iterator[pa.Table]:
    try:
        yield from part.with_format("arrow").iter(batch_size=_BATCH_ROWS)
    except Exception as error:  # whatever the reader of some format raises on odd files
        told = shortened(" ".join(str(error).split()) or type(error).__name__)
        raise BrokenInput(f"source {piece}: {told}; expected files that `datasets` can read") from error


@contextmanager
def _as_source_error(spec: HubSource) -> Iterator[None]:
    """Tells what `datasets` says of a name that it cannot find or a card that it cannot read."""
    from datasets.exceptions import DatasetsError

    try:
        yield
    except (DatasetsError, OSError, ValueError) as error:
        told = " ".join(str(error).split())
        raise SourceError(
            f"source hf:{spec.hf}: {told.rstrip('.')}; expected a data set of the Hub, a folder of data "
            "files or one that `save_to_disk` wrote"
        ) from error
