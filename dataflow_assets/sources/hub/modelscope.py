"""A data set of ModelScope, as the package `modelscope` streams it."""

import importlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import cast

from dataflow_assets.errors import SourceError
from dataflow_assets.optional_packages import require
from dataflow_assets.pipeline.problems import shortened
from dataflow_assets.sources.chunk import BrokenInput, Chunk
from dataflow_assets.sources.hub.spec import ModelScopeSource
from dataflow_assets.sources.naming import unique_slugs
from dataflow_assets.sources.piece import Found, Known, Piece
from dataflow_assets.sources.python_rows import chunk_of_rows
from dataflow_assets.sources.states import State, VersionState

_CHUNK_ROWS = 1_000


class ModelScopePiece(Piece):
    """The one split that is read."""

    def __init__(self, spec: ModelScopeSource) -> None:
        name, subset, split = spec.dataset
        self.name = ":".join(filter(None, (f"ms:{name}", subset, split)))
        (self.slug,) = unique_slugs([(split or name.rpartition("/")[2], self.name)])
        self._spec = spec

    def states(self) -> dict[str, State]:
        """The revision that is given; of the newest one nobody knows whether it is still the same."""
        return {self.name: VersionState.of({"revision": self._spec.revision})}

    def chunks(self, chunk_bytes: int) -> Iterator[Chunk]:
        """The rows in order, 1,000 at once."""
        rows = iter(self._rows())
        first = 1
        while held := self._next(rows):
            yield chunk_of_rows(held, first, self.name, self._spec)
            first += len(held)

    def _rows(self) -> Iterable[object]:
        # no extra brings it, for it pins much: its name is none of the declared packages
        loader = importlib.import_module("modelscope.msdatasets").MsDataset
        name, subset, split = self._spec.dataset
        revision = {} if self._spec.revision is None else {"version": self._spec.revision}
        try:
            found = loader.load(name, subset_name=subset, split=split, use_streaming=True, **revision)
        except Exception as error:  # whatever its HTTP library and its own checks raise
            raise SourceError(
                f"source {self.name}: {_told(error)}; expected a data set of ModelScope"
            ) from error
        if isinstance(found, dict):
            raise SourceError(
                f"source {self.name} has the splits {', '.join(map(str, found))}; expected one of them, as "
                f"ms:{name}:{subset or ''}:{next(iter(found), 'train')}"
            )
        return cast("Iterable[object]", found)

    def _next(self, rows: Iterator[object]) -> list[object]:
        try:
            return list(islice(rows, _CHUNK_ROWS))
        except Exception as error:  # the same while it streams
            raise BrokenInput(f"source {self.name}: {_told(error)}; run again when it answers") from error


def modelscope_pieces(spec: ModelScopeSource, base_dir: Path, known: Known) -> Found:
    """The split that is read. Raises ConfigError where `modelscope` is not installed."""
    require({"modelscope": ""}, "source `ms`")
    unwatched = "" if spec.revision else f"ModelScope tells no commit of {spec.ms}: set `source.revision`"
    return Found([ModelScopePiece(spec)], [], {}, unwatched)


def _told(error: Exception) -> str:
    return shortened(" ".join(str(error).split()) or type(error).__name__, 300)
