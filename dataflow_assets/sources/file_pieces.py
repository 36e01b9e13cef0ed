"""The pieces of a source of local files: a file, or a group of small ones that is read together."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from dataflow_assets.batch import ColumnType
from dataflow_assets.sources.chunk import Chunk
from dataflow_assets.sources.discovery import SourceFile, discover
from dataflow_assets.sources.documents.reader import document_schema
from dataflow_assets.sources.local_piece import LocalPiece
from dataflow_assets.sources.piece import NOTHING_KNOWN, Found, Known
from dataflow_assets.sources.readers import read_file
from dataflow_assets.sources.remote.pieces import remote_pieces
from dataflow_assets.sources.spec import SourceSpec


class FilePiece(LocalPiece):
    """A local file, or several that are read together."""

    def __init__(self, file: SourceFile, spec: SourceSpec) -> None:
        self.name, self.slug = file.name, file.slug
        self.name_column = spec.rename.get("file", "file") if file.members else None
        self.file, self._spec = file, spec

    def chunks(self, chunk_bytes: int) -> Iterator[Chunk]:
        """The rows of the files in order."""
        return read_file(self.file, self._spec, chunk_bytes)

    def known_columns(self) -> Mapping[str, ColumnType | None] | None:
        """Documents have the same columns always."""
        return document_schema(self.name, self._spec) if self._spec.files is not None else None

    def paths(self) -> dict[str, Path]:
        """The files by a name that another machine would give them too."""
        file = self.file
        if not file.members:
            return {file.name: file.path}
        if file.names:
            return dict(zip(file.names, file.members, strict=True))
        return {os.path.relpath(member, file.path): member for member in file.members}

    def told_as(self, name: str) -> str:
        """A document by its own name, all others by that of the piece."""
        return name if self.file.names else self.name


def file_pieces(spec: SourceSpec, base_dir: Path, known: Known = NOTHING_KNOWN) -> Found:
    """The files that the source means, in their order. Raises SourceError, ConfigError."""
    if spec.is_remote:
        return remote_pieces(spec, known.slugs)
    files, skipped = discover(spec, base_dir, known.slugs)
    return Found([FilePiece(file, spec) for file in files], skipped)
