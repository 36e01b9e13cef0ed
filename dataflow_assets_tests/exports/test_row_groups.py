from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataflow_assets.exports.row_groups import write_row_groups


@pytest.mark.parametrize(
    ("batches", "groups"),
    [
        ([0, 0], []),
        ([0, 3, 0, 4], [7]),
        ([60_000, 50_000, 50_000, 1], [60_000, 100_000, 1]),
        ([250_000, 1], [100_000, 100_000, 50_000, 1]),
    ],
)
def test_rows_come_in_order_in_groups_of_100_000_at_most(tmp_path: Path, batches: list, groups: list):
    table = pa.table({"n": range(sum(batches))})
    starts = [sum(batches[:number]) for number in range(len(batches))]
    with pq.ParquetWriter(tmp_path / "rows.parquet", table.schema) as writer:
        write_row_groups(writer, (table.slice(*each) for each in zip(starts, batches, strict=True)))
    file = pq.ParquetFile(tmp_path / "rows.parquet")
    assert [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)] == groups
    assert file.read().equals(table)


def test_no_group_of_long_texts_is_over_64_mib(tmp_path: Path):
    table = pa.table({"text": ["x" * (1 << 20)] * 10})
    with pq.ParquetWriter(tmp_path / "rows.parquet", table.schema) as writer:
        write_row_groups(writer, [table] * 10)
    sizes = pq.read_metadata(tmp_path / "rows.parquet")
    assert [sizes.row_group(number).num_rows for number in range(sizes.num_row_groups)] == [60, 40]
