"""What a pipeline reads now, by the names that every machine gives it, each with the hash of its content."""

from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.sources.discovery import SourceFile, discover
from dataflow_assets.sources.ingest import paths_of
from dataflow_assets.sources.manifest import FileState


def inputs_now(work: PipelineWork) -> dict[str, str]:
    """The hash of each file of the source. Raises SourceError.

    Files that were read before and look the same are not read for it.
    """
    manifest = work.manifest()
    if manifest is not None and work.source_is_current():
        read = {file.name: file.states for file in manifest.files}
    else:
        files, _ = discover(work.pipeline.source, work.pipeline.base_dir)
        read = {file.name: _states(file) for file in files}
    return {
        file if file == part else f"{file}: {part}": state.hash
        for file, states in read.items()
        for part, state in states.items()
    }


def _states(file: SourceFile) -> dict[str, FileState]:
    return {name: FileState.of(path) for name, path in paths_of(file).items()}
