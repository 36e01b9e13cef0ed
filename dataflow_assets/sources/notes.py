"""What is different from the last time that a source was read, in words a person reads."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from dataflow_assets.batch import same_columns
from dataflow_assets.sources.discovery import kind_of
from dataflow_assets.sources.manifest import Manifest
from dataflow_assets.sources.reading_spec import ReadingSpec
from dataflow_assets.sources.spec import SourceSpec

_NAMED = 3


def notes(previous: Manifest | None, manifest: Manifest, spec: ReadingSpec) -> list[str]:
    """A line for each file, or each kind of change of documents; none the first time."""
    if previous is None:
        return []
    has_documents = isinstance(spec, SourceSpec) and spec.files is not None
    found = _of_documents(previous, manifest) if has_documents else _of_files(previous, manifest)
    if not same_columns(manifest.schema, previous.schema):
        found.append("the columns of the source changed, so every batch has new columns")
    return found


def _of_files(previous: Manifest, manifest: Manifest) -> list[str]:
    found = []
    before = {file.name: file for file in previous.files}
    now = {file.name: file for file in manifest.files}
    for name, old in before.items():
        new = now.get(name)
        if new is None:
            found.append(f"{name} is gone: its {old.rows} rows leave the results")
        elif new.rows < old.rows:
            found.append(f"{name} shrank from {old.rows} to {new.rows} rows")
        elif new.states != old.states and [s.hash for s in new.states.values()] != [
            s.hash for s in old.states.values()
        ]:
            found.append(f"{name} changed ({old.rows} rows before, {new.rows} now)")
    found += [f"{name} is new: {file.rows} rows" for name, file in now.items() if name not in before]
    return found


def _of_documents(previous: Manifest, manifest: Manifest) -> list[str]:
    before, now = _hashes(previous), _hashes(manifest)
    gone = [name for name in before if name not in now]
    new = [name for name in now if name not in before]
    changed = [name for name, found in now.items() if before.get(name, found) != found]
    return [
        *_listed(gone, "gone: the rows leave the results"),
        *_listed(changed, "changed"),
        *_listed(new, "new"),
    ]


def missing_columns(manifest: Manifest, spec: ReadingSpec) -> list[str]:
    """The names of `columns` and `rename` that no row of the source has."""
    columns = spec.columns or []
    asked = columns + [name for name in spec.rename if name not in columns]
    return [name for name in asked if spec.rename.get(name, name) not in manifest.schema]


def missing_columns_line(names: Sequence[str]) -> str:
    """The same for people."""
    return (
        f"no row of the source has {', '.join(map(repr, names))}, which `source.columns` or `source.rename` "
        "names; are the names spelled as in the source?"
    )


def left_out_line(names: Sequence[str]) -> str:
    """The files of folders and globs that are not read, and why; names of files, as the manifest has them."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    endings = {PurePosixPath(name).suffix.lower() for name in names if kind_of(name)[0] is None}
    shown = [ending or "names without an ending" for ending in sorted(endings)]
    others = f" and {len(shown) - _NAMED:,} other endings" if len(shown) > _NAMED else ""
    why = f"no reader for {', '.join(shown[:_NAMED])}{others}" if shown else "not what `source` says to read"
    return f"left out: {', '.join(names[:_NAMED])}{more} ({why})"


def _hashes(manifest: Manifest) -> dict[str, str]:
    return {name: state.hash for file in manifest.files for name, state in file.states.items()}


def _listed(names: Sequence[str], what: str) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return [f"{', '.join(names[:_NAMED])}{more}: {what}"]
