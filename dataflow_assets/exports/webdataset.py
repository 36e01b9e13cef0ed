"""Tar shards for WebDataset: each row a sample with one member, its JSON."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

from dataflow_assets.batch import Schema
from dataflow_assets.finished_step import FinishedStep
from dataflow_assets.io.formats import encode

_SHARD_BYTES = 1 << 28


def write_webdataset(step: FinishedStep, columns: Schema, folder: Path) -> None:
    """Writes `shard-000000.tar` and so on, each of about 256 MiB, the rows in order.

    A sample's key is the number of its row, from 0. Raises UnwritableValue for NaN and infinities.
    """
    lines = enumerate(_lines(step, columns))
    number, first = 0, next(lines, None)
    while first is not None or number == 0:
        with tarfile.open(folder / f"shard-{number:06d}.tar", "w", format=tarfile.USTAR_FORMAT) as shard:
            size = 0
            while first is not None and size < _SHARD_BYTES:
                key, line = first
                member = tarfile.TarInfo(f"{key:09d}.json")
                member.size = len(line)
                shard.addfile(member, io.BytesIO(line))
                size += len(line)
                first = next(lines, None)
        number += 1


def _lines(step: FinishedStep, columns: Schema) -> Iterator[bytes]:
    for table in step.kept.tables(columns):
        yield from bytes(encode(table, "jsonl")).split(b"\n")[:-1]
