"""What a run left: its files as they must be equal in every run, and its records."""

import json
from collections import Counter
from pathlib import Path

_OF_ONE_RUN = {
    "generation",
    "started_at",
    "seconds",
    "checksum",
    "mtime_ns",
    "ctime_ns",
    "inode",
    "looked_at_ns",
}


def final_files(root: Path) -> dict[str, object]:
    """Every file below `root` by its path: bytes of data, JSON of records and manifest.

    Left out are the lock, and of the JSON what belongs to one run: times, inode, generation.
    """
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(root)): _content(path) for path in files}


def _content(path: Path) -> object:
    if path.name == "manifest.json" or path.parent.name == "_commits":
        return _lasting(json.loads(path.read_bytes()))
    return path.read_bytes()


def _lasting(value: object) -> object:
    if isinstance(value, dict):
        return {name: _lasting(inner) for name, inner in value.items() if name not in _OF_ONE_RUN}
    return [_lasting(inner) for inner in value] if isinstance(value, list) else value


def records(root: Path) -> dict[str, bytes]:
    """The commit records below `root`: a batch that was made again has other times in it."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("_commits/*.json"))}


def temporaries(root: Path) -> list[Path]:
    """Files under temporary names."""
    return sorted(root.rglob("*.tmp"))


def rows(
    root: Path, step: int, part: str = "", pipeline: str = "four", prefix: str | None = None
) -> list[dict]:
    """The rows of a step over its batches, in the order of their names."""
    folder = root / pipeline / f"{prefix or pipeline}_step{step}" / part
    return [
        json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.open(encoding="utf-8")
    ]


def materialized(home: Path, step: str, pipeline: str = "four") -> Counter[str]:
    """How often Dagster was told of each partition of a step."""
    import dagster as dg

    with dg.DagsterInstance.from_config(str(home)) as instance:
        key = dg.AssetKey([pipeline, step])
        found = instance.fetch_materializations(key, limit=1000).records
    return Counter(str(record.partition_key) for record in found)
