"""Replaces a committed batch so that a kill at any moment leaves the old one or the new one.

The files of the new batch are durable under temporary names; then its record is put beside the old
one under a name of its own, and from that moment on the new batch is what will be: whoever holds the
pipeline's lock next finishes what is left to do.
"""

from dataclasses import replace
from pathlib import Path

from dataflow_assets.io import atomic
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.step_folder import COMMITS, Prepared, StepFolder, is_as_stored, read_record

NEXT_SUFFIX = ".next"


class ReplacedFolder(StepFolder):
    """A step's folder whose batches are replaced by others that were made of part of their rows."""

    def commit(self, prepared: Prepared) -> CommitRecord:
        """Publishes the batch in place of the one that is there; `seconds` add up. Raises StorageError."""
        record_file = self.record_file(prepared.record.batch)
        record = prepared.record
        if old := read_record(str(record_file)):
            seconds = round(old.seconds + record.seconds, 4)
            record = replace(record, generation=old.generation + 1, seconds=seconds)
        self.tell_loaders()
        atomic.make_folder(record_file.parent)
        announced = record_file.with_name(f".{record_file.name}{NEXT_SUFFIX}")
        atomic.write_atomically(announced, record.to_bytes())
        _finish(announced)
        return record


def finish_replacements(pipeline_folder: Path) -> int:
    """Finishes the replacements that a killed process had announced; how many there were.

    The pipeline's lock must be held. Raises StorageError.
    """
    name = f"{COMMITS}/.*{NEXT_SUFFIX}"
    return sum(_finish(path) for depth in ("*", "*/*") for path in pipeline_folder.glob(f"{depth}/{name}"))


def _finish(announced: Path) -> bool:
    """Gives the new files their names, removes what they replace, writes the record.

    Where another batch was made in the meantime, the new files are gone: then nothing is done.
    """
    record = read_record(str(announced))
    folder = StepFolder(announced.parents[1])
    files = record.files.values() if record else ()
    paths = {folder.stored_path(stored): stored for stored in files}
    waiting = {path for path, stored in paths.items() if is_as_stored(str(atomic.temporary(path)), stored)}
    there = all(path in waiting or is_as_stored(str(path), stored) for path, stored in paths.items())
    if record is not None and there:
        for path in sorted(waiting):
            atomic.publish(path)
        _replace_record(folder, record, set(paths))
        for path in paths:
            atomic.temporary(path).unlink(missing_ok=True)  # of an object, which had its name before
    atomic.remove(announced)
    return record is not None and there


def _replace_record(folder: StepFolder, record: CommitRecord, paths: set[Path]) -> None:
    old = read_record(str(folder.record_file(record.batch)))
    for stored in old.files.values() if old else ():
        if (path := folder.stored_path(stored)) not in paths:
            atomic.remove(path)
    for parent in sorted({path.parent for path in paths}):
        atomic.sync_folder(parent)
    atomic.write_atomically(folder.record_file(record.batch), record.to_bytes())
