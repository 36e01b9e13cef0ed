"""What a pipeline reads now, by the names that every machine gives it, each with the hash of its content."""

from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.sources.current import known_before
from dataflow_assets.sources.opening import find_pieces


def inputs_now(work: PipelineWork) -> dict[str, str]:
    """The hash of each part of the source: of a file its content's, else of its version.

    What was read before and looks the same is not read for it. Raises SourceError.
    """
    manifest = work.manifest()
    if manifest is not None and work.source_is_current(any_format=True):
        read = {file.name: file.states for file in manifest.files}
    else:
        known = known_before(work.pipeline, work.layout)
        pieces = find_pieces(work.pipeline.source, work.pipeline.base_dir, known).pieces
        read = {piece.name: piece.states() for piece in pieces}
    return {
        piece if piece == part else f"{piece}: {part}": state.hash
        for piece, states in read.items()
        for part, state in states.items()
    }
