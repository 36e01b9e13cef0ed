"""Pieces that are local files: what all of them have in common is how a change is seen."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path

from dataflow_assets.errors import SourceError
from dataflow_assets.sources.piece import Piece
from dataflow_assets.sources.states import FileState, State


class LocalPiece(Piece):
    """A piece whose rows are in these local files."""

    @abstractmethod
    def paths(self) -> dict[str, Path]:
        """The files by a name that another machine would give them too."""

    def states(self) -> dict[str, State]:
        """The state of each file; reads all of them."""
        return {name: FileState.of(path) for name, path in self.paths().items()}

    def is_still(self, read: Mapping[str, State]) -> bool:
        """Whether the files are as they were; mostly without reading them."""
        paths = self.paths()
        return list(paths) == list(read) and all(_is_still(read[name], path) for name, path in paths.items())

    def check_same(self, before: Mapping[str, State]) -> None:
        """Raises SourceError where a file changed while it was read."""
        for name, path in self.paths().items():
            if not _is_still(before[name], path):
                raise SourceError(
                    f"{self.told_as(name)} changed while it was read; run again when it is complete"
                )

    def told_as(self, name: str) -> str:
        """What a person is told of the file with this name."""
        return name

    def look(self) -> object:
        """The size and time of each file."""
        found = [(str(path), path.stat()) for path in self.paths().values()]
        return [[path, status.st_size, status.st_mtime_ns] for path, status in found]

    def size(self) -> int:
        """The bytes of the files."""
        return sum(path.stat().st_size for path in self.paths().values() if path.is_file())


def _is_still(state: State, path: Path) -> bool:
    return isinstance(state, FileState) and state.is_still(path)
