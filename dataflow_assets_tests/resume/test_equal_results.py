"""The rows of a result do not depend on batch size, workers or order of completion."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from dataflow_assets_tests.crash.compare import rows
from dataflow_assets_tests.crash.project import write_project
from dataflow_assets_tests.resume.runs import made

ROWS = 24
PARTS = ("", "_rejected", "_failed")


def results(folder: Path, instance: dg.DagsterInstance, **changes: int) -> Iterator[list[dict]]:
    """The rows of every part of every step."""
    root = folder / "-".join(f"{name}{value}" for name, value in changes.items())
    made(folder, instance, root=str(root), **changes)
    return (rows(root, step, part) for step in range(5) for part in PARTS)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """24 rows, of which the last 9 repeat the first."""
    write_project(tmp_path, rows=ROWS, repeat_after=15)
    return tmp_path


@pytest.mark.parametrize("batch_rows", [1, 3, ROWS, ROWS + 1])
def test_batch_sizes_give_equal_rows(small: Path, instance: dg.DagsterInstance, batch_rows: int) -> None:
    assert list(results(small, instance, batch_rows=batch_rows)) == list(
        results(small, instance, batch_rows=10)
    )


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_worker_counts_give_equal_rows(small: Path, instance: dg.DagsterInstance, workers: int) -> None:
    expected = list(results(small, instance, batch_rows=5))
    assert list(results(small, instance, workers=workers, batch_rows=5)) == expected


def test_order_is_input_order(small: Path, instance: dg.DagsterInstance) -> None:
    made(small, instance, root=str(small / "data"), batch_rows=1, workers=2)
    for step in range(5):
        numbers = [each["n"] for each in rows(small / "data", step)]
        assert numbers == sorted(numbers)
    assert len(numbers) > 3


def test_the_first_of_duplicates_stays(small: Path, instance: dg.DagsterInstance) -> None:
    made(small, instance, root=str(small / "data"), batch_rows=3)
    kept = {each["n"] for each in rows(small / "data", 4)}
    dropped = {each["n"] for each in rows(small / "data", 4, "_rejected")}
    assert dropped == {each["n"] for each in rows(small / "data", 3) if each["n"] >= 15}
    assert {number - 15 for number in dropped} <= kept
