"""Whether what was read of a source is what the source holds now."""

import orjson
import xxhash

from dataflow_assets.control import look_again
from dataflow_assets.io.batch_stream import as_wanted
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.formats import EXTENSIONS, Format
from dataflow_assets.io.layout import PipelineLayout
from dataflow_assets.io.step_folder import StepFolder
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.sources.manifest import Manifest, ReadFile
from dataflow_assets.sources.opening import find_pieces
from dataflow_assets.sources.piece import Known, Piece

READER_VERSION = "2"


def settings_hash(pipeline: Pipeline, format: Format | None = None) -> str:
    """What decides the batches beside the pieces' content, in another format than its own where given."""
    spec = pipeline.source.settings()
    settings = [READER_VERSION, spec, pipeline.batch_rows, pipeline.batch_bytes, format or pipeline.format]
    return xxhash.xxh3_128_hexdigest(orjson.dumps(settings, option=orjson.OPT_SORT_KEYS))


def read_manifest(pipeline: Pipeline, layout: PipelineLayout) -> Manifest | None:
    """The manifest of this pipeline and prefix, or None. Raises StorageError, RunError."""
    look_again(layout.folder)
    manifest = Manifest.read(layout.manifest_file)
    return manifest if manifest is not None and manifest.prefix == pipeline.prefix else None


def known_before(pipeline: Pipeline, layout: PipelineLayout) -> Known:
    """What earlier readings settled, the one that was interrupted last too."""
    pins: dict[str, str] = {}
    slugs: dict[str, str] = {}
    for manifest in (read_manifest(pipeline, layout), Manifest.read(layout.reading_file)):
        if manifest is not None:
            pins |= manifest.pins
            slugs = {file.name: file.slug for file in manifest.files} | slugs
    return Known(pins, slugs)


def source_is_current(pipeline: Pipeline, layout: PipelineLayout, any_format: bool = False) -> bool:
    """Whether step 0 holds exactly what the source holds now, in its format or any. Raises SourceError."""
    manifest = read_manifest(pipeline, layout)
    formats = EXTENSIONS if any_format else (pipeline.format,)
    if manifest is None or manifest.settings not in {settings_hash(pipeline, each) for each in formats}:
        return False
    fixed = pipeline.source.never_changes(pipeline.base_dir, manifest.pins)
    if not fixed and not _pieces_are_as_read(pipeline, layout, manifest):
        return False
    folder = layout.step(0)
    records = (records_as_read(folder, file) for file in manifest.files)
    return all(
        found is not None and (any_format or all(as_wanted(folder, record) is record for record in found))
        for found in records
    )


def _pieces_are_as_read(pipeline: Pipeline, layout: PipelineLayout, manifest: Manifest) -> bool:
    found = find_pieces(pipeline.source, pipeline.base_dir, known_before(pipeline, layout))
    pieces = found.pieces
    if [piece.name for piece in pieces] != [file.name for file in manifest.files]:
        return False
    if found.skipped != manifest.skipped:
        return False
    read = {file.name: file for file in manifest.files}
    return all(is_as_read(piece, read[piece.name]) for piece in pieces)


def records_as_read(folder: StepFolder, read: ReadFile) -> list[CommitRecord] | None:
    """The records of the piece's batches; None where one is gone or of another reading."""
    found = []
    for key, fingerprint in read.batches.items():
        record = folder.record(key)
        if record is None or record.fingerprint != fingerprint:
            return None
        found.append(record)
    return found


def is_as_read(piece: Piece, read: ReadFile) -> bool:
    """Whether the piece is what was read."""
    return piece.slug == read.slug and piece.is_still(read.states)
