"""Data sets that the tests write: saved to disk, and as folders of files with a card."""

import datetime
import json
from pathlib import Path

import pytest

datasets = pytest.importorskip("datasets", reason="HUGGING FACE DATA SETS ARE NOT TESTED: no `datasets`")
ClassLabel, Dataset, DatasetDict, Features = (
    datasets.ClassLabel,
    datasets.Dataset,
    datasets.DatasetDict,
    datasets.Features,
)
List, Value = datasets.List, datasets.Value

FEATURES = Features(
    {
        "text": Value("string"),
        "label": ClassLabel(names=["neg", "pos"]),
        "tags": List(ClassLabel(names=["a", "b"])),
        "meta": {"a": Value("int64"), "b": List(Value("float32"))},
        "when": Value("timestamp[ms, tz=UTC]"),
        "big": Value("int64"),
    }
)


def dataset(rows: int = 100) -> "datasets.Dataset":
    """Rows of many kinds, in Chinese, with nulls."""
    when = datetime.datetime(2024, 1, 5, 10, tzinfo=datetime.timezone.utc)
    return Dataset.from_list(
        [
            {
                "text": f"行 {n}" if n % 7 else None,
                "label": n % 2 if n % 5 else -1,
                "tags": [0, 1],
                "meta": {"a": n, "b": [0.5]},
                "when": when,
                "big": 2**63 - 1 - n,
            }
            for n in range(rows)
        ],
        features=FEATURES,
    )


def saved(path: Path, rows: int = 100, shards: int = 3) -> Path:
    """The data set in a folder of `save_to_disk`."""
    dataset(rows).save_to_disk(path, num_shards=shards)
    return path


def saved_splits(path: Path) -> Path:
    """The same with the splits train and test."""
    DatasetDict({"train": dataset(), "test": dataset(10)}).save_to_disk(path)
    return path


def parquet_folder(path: Path, shards: int = 3) -> Path:
    """A folder as the Hub has it: parquet files by split."""
    (path / "data").mkdir(parents=True)
    for shard in range(shards):
        part = dataset().shard(shards, shard, contiguous=True)
        part.to_parquet(path / f"data/train-{shard:05d}-of-{shards:05d}.parquet")
    dataset(10).to_parquet(path / "data/test-00000-of-00001.parquet")
    return path


def jsonl_folder(path: Path, card: str = "") -> Path:
    """A folder of JSON lines, with a card where one is given."""
    path.mkdir(parents=True)
    lines = [json.dumps({"code": "007", "day": "2024-01-05", "n": n}) for n in range(20)]
    (path / "train.jsonl").write_text("\n".join(lines))
    if card:
        (path / "README.md").write_text(f"---\n{card}\n---\n# Card\n")
    return path
