"""A user's own assets beside a pipeline's: they read its batches, run with it, and keep their events."""

import dagster as dg
import pyarrow as pa
import pytest

from dataflow_assets.assets import IO_MANAGER_KEY
from dataflow_assets.io.step_files import StoredBatches
from dataflow_assets_tests.dagster_side.small_pipelines import SmallProject

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


@pytest.fixture
def project(tmp_path):
    project = SmallProject(tmp_path)
    project.write_rows("a", ["One", "two", "Two", "x"])
    return project


def reader(annotation, seen, of="last", **settings):
    def downstream(context, rows):
        seen.append(rows)

    downstream.__annotations__ = {"context": dg.AssetExecutionContext, "rows": annotation}
    ins = {"rows": dg.AssetIn(key=["small", of])}
    return dg.asset(ins=ins, io_manager_key=IO_MANAGER_KEY, **settings)(downstream)


def test_an_asset_downstream_of_a_step_reads_all_its_batches(project):
    seen = []
    project.run()
    project.run_in_ui_with(reader(StoredBatches, seen))
    assert [batch.key for batch in seen[0]] == ["a_b00000", "a_b00001"]
    assert seen[0].table()["text"].to_pylist() == ["one", "two"]


def test_a_partitioned_asset_downstream_of_a_step_reads_its_own_batch(project):
    seen = []
    project.run()
    partitions = dg.DynamicPartitionsDefinition(name="small")
    project.run_in_ui_with(reader(pa.Table, seen, partitions_def=partitions), partition="a_b00001")
    assert seen[0]["row_id"].to_pylist() == []


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_an_asset_downstream_of_the_source_reads_all_its_batches(tmp_path, format):
    seen, project = [], SmallProject(tmp_path, format=format)
    project.write_rows("a", ["One", "two", "Two", "x"])
    project.run()
    project.run_in_ui_with(reader(StoredBatches, seen, of="source"))
    assert [batch.key for batch in seen[0]] == ["a_b00000", "a_b00001"]
    assert seen[0].table()["text"].to_pylist() == ["One", "two", "Two", "x"]


def test_an_asset_downstream_reads_parquet_without_being_told(tmp_path):
    seen, project = [], SmallProject(tmp_path, format="parquet")
    project.write_rows("a", ["One"])
    project.run()
    project.run_in_ui_with(reader(pa.Table, seen))
    assert seen[0]["text"].to_pylist() == ["one"]


def test_in_a_run_of_both_each_foreign_asset_has_its_event_and_each_batch_its_numbers(project):
    @dg.asset(deps=[dg.AssetKey(["small", "source"])])
    def foreign():
        return 3

    project.run_in_ui_with(foreign, names=["source", "foreign"])
    event = project.instance.get_latest_materialization_event(foreign.key)
    assert event.asset_materialization.tags["dagster/data_version"]
    assert project.metadata("source")["dagster/row_count"] == 4
    assert project.event_count("source") == project.event_count_of(foreign.key) == 1
