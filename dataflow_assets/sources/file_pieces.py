"""The pieces of a source of local files: a file, or a group of small ones that is read together."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from dataflow_assets.batch import ColumnType
from dataflow_assets.errors import SourceError
from dataflow_assets.sources.chunk import Chunk
from dataflow_assets.sources.discovery import SourceFile, discover
from dataflow_assets.sources.documents.reader import document_schema
from dataflow_assets.sources.piece import NOTHING_KNOWN, Found, Known, Piece
from dataflow_assets.sources.readers import read_file
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets.sources.states import FileState, State


class FilePiece(Piece):
    """A local file, or several that are read together."""

    def __init__(self, file: SourceFile, spec: SourceSpec) -> None:
        self.name, self.slug = file.name, file.slug
        self.name_column = spec.rename.get("file", "file") if file.members else None
        self.file, self._spec = file, spec

    def states(self) -> dict[str, State]:
        """The state of each file; reads all of them."""
        return {name: FileState.of(path) for name, path in self._paths.items()}

    def chunks(self, chunk_bytes: int) -> Iterator[Chunk]:
        """The rows of the files in order."""
        return read_file(self.file, self._spec, chunk_bytes)

    def is_still(self, read: Mapping[str, State]) -> bool:
        """Whether the files are as they were; mostly without reading them."""
        paths = self._paths
        return list(paths) == list(read) and all(_is_still(read[name], path) for name, path in paths.items())

    def check_same(self, before: Mapping[str, State]) -> None:
        """Raises SourceError where a file changed while it was read."""
        for name, path in self._paths.items():
            if not _is_still(before[name], path):
                changed = name if self.file.names else self.name
                raise SourceError(f"{changed} changed while it was read; run again when it is complete")

    def look(self) -> object:
        """The size and time of each file."""
        found = [(str(path), path.stat()) for path in self._paths.values()]
        return [[path, status.st_size, status.st_mtime_ns] for path, status in found]

    def known_columns(self) -> Mapping[str, ColumnType | None] | None:
        """Documents have the same columns always."""
        return document_schema(self.name, self._spec) if self._spec.files is not None else None

    def size(self) -> int:
        """The bytes of the files."""
        return sum(path.stat().st_size for path in self._paths.values() if path.is_file())

    @property
    def _paths(self) -> dict[str, Path]:
        """The files by a name that another machine would give them too."""
        file = self.file
        if not file.members:
            return {file.name: file.path}
        if file.names:
            return dict(zip(file.names, file.members, strict=True))
        return {os.path.relpath(member, file.path): member for member in file.members}


def _is_still(state: State, path: Path) -> bool:
    return isinstance(state, FileState) and state.is_still(path)


def file_pieces(spec: SourceSpec, base_dir: Path, known: Known = NOTHING_KNOWN) -> Found:
    """The files that the source means, in their order. Raises SourceError."""
    files, skipped = discover(spec, base_dir)
    return Found([FilePiece(file, spec) for file in files], skipped)
