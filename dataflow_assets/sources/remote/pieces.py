"""The pieces of a source whose files are given by URL."""

import glob
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path, PurePosixPath

from dataflow_assets.batch import ColumnType
from dataflow_assets.errors import SourceError
from dataflow_assets.sources.chunk import BrokenInput, Chunk
from dataflow_assets.sources.discovery import (
    Named,
    SourceFile,
    document_groups,
    fits,
    is_data,
    known_extensions,
    source_file,
)
from dataflow_assets.sources.documents.formats import check_packages, document_format
from dataflow_assets.sources.documents.reader import document_schema
from dataflow_assets.sources.naming import with_slugs
from dataflow_assets.sources.outputs import outputs_among, remote_outputs, spells_a_step
from dataflow_assets.sources.piece import Found, Piece
from dataflow_assets.sources.readers import read_file
from dataflow_assets.sources.remote.attempts import repeated
from dataflow_assets.sources.remote.cache import local_copy
from dataflow_assets.sources.remote.file_system import FileSystemStore
from dataflow_assets.sources.remote.http import WebStore
from dataflow_assets.sources.remote.store import RemoteFile, Store, Unreachable
from dataflow_assets.sources.remote.urls import file_name, scheme_of, shown_url
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets.sources.states import State, VersionState

Reader = Callable[[SourceFile, int], Iterator[Chunk]]
"""Reads a local copy, about so many bytes a chunk."""
_LOOK_BYTES = 8 * 2**20
_NO_SIGN = "the server tells neither ETag nor date of {}: it is read again each time, and not watched"


def _read_as(spec: SourceSpec, file: SourceFile, chunk_bytes: int) -> Iterator[Chunk]:
    return read_file(file, spec, chunk_bytes)


class RemotePiece(Piece):
    """A file that is elsewhere, or documents that are read together; read from a local copy."""

    def __init__(
        self,
        file: SourceFile,
        parts: Sequence[RemoteFile],
        store: Store,
        spec: SourceSpec,
        read: Reader | None = None,
    ) -> None:
        self.name, self.slug = file.name, file.slug
        self.file, self._parts, self._store, self._spec = file, parts, store, spec
        self._reader = read or partial(_read_as, spec)

    def states(self) -> dict[str, State]:
        """What the store tells of each file: version, date, size."""
        return {part.name: VersionState.of(part.facts, part.size or 0) for part in self._parts}

    def is_still(self, read: Mapping[str, State]) -> bool:
        """Whether the store tells the same of each file, and tells enough to know."""
        return all(part.certain for part in self._parts) and super().is_still(read)

    def check_same(self, before: Mapping[str, State]) -> None:
        """Nothing: the copy that is read is of one version."""

    def look(self) -> object:
        """What the store tells, which costs nothing more."""
        return [[part.name, dict(part.facts)] for part in self._parts]

    def chunks(self, chunk_bytes: int) -> Iterator[Chunk]:
        """The rows of the copies, which are fetched where they are not there."""
        with ExitStack() as stack:
            paths = [stack.enter_context(local_copy(self._store, part)) for part in self._parts]
            members = tuple(paths) if self.file.members else ()
            yield from self._reader(self.file._replace(path=paths[0], members=members), chunk_bytes)

    def for_a_look(self) -> Piece:
        """The beginning of a large file of lines; else the piece, whose copy the run needs anyway."""
        (size,) = [part.size for part in self._parts] if len(self._parts) == 1 else (0,)
        large = size is None or size > _LOOK_BYTES
        by_line = self.file.format in ("jsonl", "csv", "tsv", "txt", "json")
        return _Beginning(self, self._parts[0], self._store, self._spec) if large and by_line else self

    def known_columns(self) -> Mapping[str, ColumnType | None] | None:
        """Documents have the same columns always."""
        return document_schema(self.name, self._spec) if self._spec.files is not None else None

    def size(self) -> int:
        """The bytes that the store tells."""
        return sum(part.size or 0 for part in self._parts)


class _Beginning(Piece):
    """The first bytes of a remote file, for a look at its columns."""

    def __init__(self, piece: RemotePiece, part: RemoteFile, store: Store, spec: SourceSpec) -> None:
        self.name, self.slug, self.file = piece.name, piece.slug, piece.file
        self._part, self._store, self._spec = part, store, spec

    def states(self) -> dict[str, State]:
        """Nothing that is kept."""
        return {}

    def chunks(self, chunk_bytes: int) -> Iterator[Chunk]:
        """The rows that are whole in the first 8 MiB."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "beginning")
            path.write_bytes(repeated(self._head))
            held: Chunk | None = None
            try:
                for chunk in read_file(self.file._replace(path=path), self._spec, chunk_bytes):
                    if held is not None:
                        yield held
                    held = chunk
            except BrokenInput:
                pass
            if held is not None:
                yield held._replace(bad=[])  # the last record may be cut

    def _head(self) -> bytes:
        head = bytearray()
        for block in self._store.blocks(self._part, 0):
            head += block
            if len(head) >= _LOOK_BYTES:
                break
        if self.file.compression is None and self.file.format != "json":
            return bytes(head[: head.rfind(b"\n") + 1] or head)
        return bytes(head)


def remote_pieces(spec: SourceSpec, known_slugs: Mapping[str, str] = {}) -> Found:
    """The files of the URLs, in their order. Raises SourceError, ConfigError."""
    found: dict[str, tuple[RemoteFile, Store]] = {}
    skipped: list[str] = []
    for url in spec.paths:
        store = store_of(url, spec.storage_options)
        files, left_out = _chosen(url, store, spec)
        skipped += left_out
        for file in files:
            found.setdefault(_unique_name(file, found), (file, store))
    if spec.files is not None:
        check_packages(spec.format or document_format(name) for name in found)
    pieces = pieces_of(found, spec, known_slugs=known_slugs)
    unknown = next((file.name for file, _ in found.values() if not file.certain), None)
    return Found(pieces, skipped, {}, _NO_SIGN.format(unknown) if unknown else "")


def pieces_of(
    found: Mapping[str, tuple[RemoteFile, Store]],
    spec: SourceSpec,
    read: Reader | None = None,
    known_slugs: Mapping[str, str] = {},
) -> list[RemotePiece]:
    """The pieces of files that are known by these names."""
    if spec.files is None:
        named = [
            source_file(spec, Named(Path(file_name(file.name)), name)) for name, (file, _) in found.items()
        ]
        return [
            RemotePiece(file, [found[file.name][0]], found[file.name][1], spec, read)
            for file in with_slugs(named, known_slugs)
        ]
    documents = [SourceFile(Path(file_name(name)), name, "", "documents") for name in found]
    return [
        RemotePiece(
            group,
            [found[name][0]._replace(name=name) for name in group.names],
            found[group.names[0]][1],
            spec,
        )
        for group in document_groups(documents)
    ]


def store_of(url: str, options: Mapping[str, object]) -> Store:
    """Who is asked for the files of this URL. Raises ConfigError."""
    return WebStore() if scheme_of(url) in ("http", "https") else FileSystemStore(url, options)


def _chosen(url: str, store: Store, spec: SourceSpec) -> tuple[list[RemoteFile], list[str]]:
    files = repeated(lambda: store.found(url))
    told = shown_url(url)
    if len(files) == 1 and files[0].name.rstrip("/") == told.rstrip("/"):
        return files, []
    base = told.partition("*")[0].rpartition("/")[0]
    spelled = any(part.startswith("_") for part in PurePosixPath(told).parts)
    inside = {file.name: PurePosixPath(file.name.removeprefix(base)).parts for file in files}
    outputs = _outputs(told, base, store, inside)
    data = [
        file
        for file in files
        if file.name not in outputs and (spelled or all(map(is_data, inside[file.name])))
    ]
    chosen = [file for file in data if fits(spec, file_name(file.name))]
    left_out = [file.name for file in data if file not in chosen]
    if not chosen:
        some = ", ".join(left_out[:3]) + (", …" if len(left_out) > 3 else "")
        raise SourceError(
            f"source {told} has no file that can be read as {spec.format or 'a known format'} "
            f"(found {len(left_out)}{f': {some}' if some else ''}); expected one of "
            f"{known_extensions(spec)}, or set `source.format`"
        )
    return chosen, left_out


def _outputs(told: str, base: str, store: Store, names: Iterable[str]) -> set[str]:
    """The names of files that a pipeline wrote, unless the URL leads into its steps on purpose."""
    if not glob.has_magic(told):
        return remote_outputs(told.rstrip("/"), names)
    return set() if spells_a_step(told) else outputs_among(base, names, partial(_has_files, store))


def _has_files(store: Store, url: str) -> bool:
    try:
        return bool(repeated(lambda: store.found(url)))
    except Unreachable:
        raise
    except SourceError:  # there is no such folder
        return False


def _unique_name(file: RemoteFile, taken: Mapping[str, tuple[RemoteFile, Store]]) -> str:
    """The name of the file; of files that differ in their query alone the later ones get a number."""
    name, number = file.name, 1
    while name in taken and taken[name][0].url != file.url:
        number += 1
        name = f"{file.name}#{number}"
    return name
