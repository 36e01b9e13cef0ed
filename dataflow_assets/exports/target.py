"""Where a file for people may not go: over what its pipeline reads, and into what a pipeline keeps."""

from collections.abc import Iterator
from pathlib import Path

from dataflow_assets.errors import ConfigError, SourceError
from dataflow_assets.io.layout import MANIFEST
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.sources.local_piece import LocalPiece


def check_target(work: PipelineWork, to: Path) -> None:
    """Refuses a file or folder that the pipeline reads or that is in a pipeline's folder of the root.

    Links are resolved, and a folder is refused with what it holds. Raises ConfigError.
    """
    target, root, own = to.resolve(), work.layout.root.resolve(), work.layout.folder.resolve()
    folder = root / target.relative_to(root).parts[0] if root in target.parents else own
    if own.is_relative_to(target) or (target.is_relative_to(folder) and (folder / MANIFEST).is_file()):
        raise ConfigError(
            f"{to} is {'in' if target.is_relative_to(folder) else 'above'} {folder}, where a pipeline keeps "
            "its own files; give a place outside of it"
        )
    check_not_read(work, to)


def check_not_read(work: PipelineWork, to: Path) -> None:
    """Refuses the pipeline's own file and source, and a folder that holds them. Raises ConfigError."""
    target = to.resolve()
    for what, path in _read_by(work) if to.exists() else ():
        if target == path or target in path.parents:
            raise ConfigError(
                f"{to} is{' a folder of' if path != target else ''} the pipeline's own {what} ({path}), "
                "which would be replaced; give another name"
            )


def _read_by(work: PipelineWork) -> Iterator[tuple[str, Path]]:
    """The pipeline's file, and the local files that the source means now where they can be found."""
    if work.pipeline.file is not None:
        yield "file", work.pipeline.file.resolve()
    if work.pipeline.source.is_far:
        return
    try:
        pieces = work.source_pieces().pieces
    except (ConfigError, SourceError):
        return
    for piece in pieces:
        if isinstance(piece, LocalPiece):
            yield from (("source", path.resolve()) for path in piece.paths().values())
