"""What the tests of the failed-sample queue share."""

from pathlib import Path

import dagster as dg
import pytest

from dataflow_assets_tests.failed.project import Queue


@pytest.fixture
def queue(tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> Queue:
    """Where projects are made: `queue.at("ill", STEP, …, sick=[5])` is one that was run once."""
    return Queue(tmp_path, instance, monkeypatch)
