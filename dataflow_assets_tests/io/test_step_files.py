"""The IO manager on assets of a plain Dagster user: plain, partitioned, fan-in."""

import dagster as dg
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dataflow_assets.errors import ConfigError, MissingBatch, UnwritableValue
from dataflow_assets.io.step_files import StepFilesIOManager, StoredBatches
from dataflow_assets_tests.io.user_assets import ONE_RUN, UserProject

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
ROWS = [{"id": 1, "text": "007"}, {"id": 2, "text": "é"}]
LETTERS = dg.StaticPartitionsDefinition(["a", "b", "c"])


@pytest.fixture
def project(tmp_path):
    return UserProject(tmp_path / "root")


def made_by(value, **settings):
    @dg.asset(name="made", **settings)
    def made():
        return value

    return made


def read_as(annotation, seen, **settings):
    def read(made):
        seen.append(made)

    read.__annotations__["made"] = annotation
    return dg.asset(**settings)(read)


AS_ROWS = pytest.mark.parametrize(
    "value", [ROWS, pa.Table.from_pylist(ROWS), pd.DataFrame(ROWS)], ids=["rows", "arrow", "pandas"]
)


@AS_ROWS
def test_an_asset_becomes_one_file_with_a_commit_record(project, value):
    project.run(made_by(value))
    assert project.files() == ["made/_commits/all.json", "made/all.jsonl"]
    assert project.lines("made/all.jsonl") == ROWS


@AS_ROWS
def test_what_was_stored_comes_back_as_an_arrow_table(project, value):
    seen = []
    project.run(made_by(value), read_as(pa.Table, seen))
    assert seen[0].to_pylist() == ROWS


def test_a_parameter_annotated_with_a_data_frame_gets_one(project):
    seen = []
    project.run(made_by(ROWS), read_as(pd.DataFrame, seen))
    assert isinstance(seen[0], pd.DataFrame)
    assert seen[0].to_dict("records") == ROWS


def test_a_parameter_without_annotation_gets_a_table(project):
    seen = []

    @dg.asset
    def read(made):
        seen.append(made)

    project.run(made_by(ROWS), read)
    assert isinstance(seen[0], pa.Table)


def test_a_lazy_parameter_reads_nothing_before_it_is_asked(project):
    seen = []
    project.run(made_by(ROWS), read_as(StoredBatches, seen))
    (project.root / "made" / "all.jsonl").unlink()
    with pytest.raises(MissingBatch, match="'all' of made"):
        list(seen[0])


def test_a_nested_value_is_read_back_as_it_was_written(project):
    seen = []
    project.run(made_by([{"tags": ["a", {"b": None}]}]), read_as(StoredBatches, seen))
    assert project.lines("made/all.jsonl") == [{"tags": ["a", {"b": None}]}]
    assert seen[0].table()["tags"].to_pylist() == ['["a",{"b":null}]']


def test_the_file_of_another_format_has_its_ending(tmp_path):
    project, seen = UserProject(tmp_path / "root", "parquet"), []
    project.run(made_by(ROWS), read_as(pa.Table, seen))
    assert project.files() == ["made/_commits/all.json", "made/all.parquet"]
    assert seen[0].to_pylist() == ROWS


def test_a_prefixed_key_becomes_folders_that_no_disk_confuses(project):
    @dg.asset(key=["team", "Made"])
    def made():
        return ROWS

    project.run(made)
    assert project.files()[1].startswith("team/made=")
    assert project.files()[1].endswith("/all.jsonl")


def test_one_partition_is_one_file(project):
    project.run(made_by(ROWS, partitions_def=LETTERS), partition="b")
    assert project.files() == ["made/_commits/b.json", "made/b.jsonl"]


def test_a_daily_partition_is_named_by_its_date(project):
    daily = dg.DailyPartitionsDefinition("2024-01-01")
    project.run(made_by(ROWS, partitions_def=daily), partition="2024-01-02")
    assert project.files() == ["made/2024-01-02.jsonl", "made/_commits/2024-01-02.json"]


def test_a_multi_partition_is_read_back_by_the_same_key(project):
    both = dg.MultiPartitionsDefinition(
        {"day": dg.DailyPartitionsDefinition("2024-01-01"), "letter": LETTERS}
    )
    seen, key = [], dg.MultiPartitionKey({"day": "2024-01-02", "letter": "b"})
    project.run(
        made_by(ROWS, partitions_def=both), read_as(pa.Table, seen, partitions_def=both), partition=key
    )
    assert seen[0].to_pylist() == ROWS
    assert project.files()[0].startswith("made/2024-01-02-b=")


def test_a_downstream_partition_reads_its_own_upstream_partition(project):
    seen = []
    made = made_by({"a": ROWS[:1], "b": ROWS[1:]}, partitions_def=LETTERS, backfill_policy=ONE_RUN)
    project.run(made, keys=("a", "b"))
    project.run(made, read_as(pa.Table, seen, partitions_def=LETTERS), partition="b", selection=["read"])
    assert seen[0].to_pylist() == ROWS[1:]


def test_a_run_over_several_partitions_stores_each_of_the_returned_dict(project):
    made = made_by({"a": ROWS, "b": ROWS[:1]}, partitions_def=LETTERS, backfill_policy=ONE_RUN)
    project.run(made, keys=("a", "b"))
    assert [name for name in project.files() if "_commits" not in name] == ["made/a.jsonl", "made/b.jsonl"]
    assert project.lines("made/b.jsonl") == ROWS[:1]


@pytest.mark.parametrize("wanted", [{"keys": ("c", "c")}, {"partition": "c"}])
def test_a_run_over_one_partition_may_return_a_dict_of_it(project, wanted):
    project.run(made_by({"c": ROWS}, partitions_def=LETTERS, backfill_policy=ONE_RUN), **wanted)
    assert project.lines("made/c.jsonl") == ROWS


def test_a_run_over_several_partitions_that_returns_one_table_is_told_what_is_expected(project):
    made = made_by(ROWS, partitions_def=LETTERS, backfill_policy=ONE_RUN)
    with pytest.raises(ConfigError, match=r"returned list; expected for the 2 partitions .* a dict"):
        project.run(made, keys=("a", "b"))


def test_a_partition_that_the_dict_lacks_is_named_before_anything_is_stored(project):
    made = made_by({"a": ROWS}, partitions_def=LETTERS, backfill_policy=ONE_RUN)
    with pytest.raises(ConfigError, match="nothing for partition 'b'"):
        project.run(made, keys=("a", "b"))
    assert project.files() == []


def test_fan_in_reads_all_partitions_in_order(project):
    seen = []
    made = made_by({"a": ROWS[:1], "b": ROWS[1:], "c": []}, partitions_def=LETTERS, backfill_policy=ONE_RUN)
    project.run(made, keys=("a", "c"))
    project.run(made, read_as(StoredBatches, seen), selection=["read"])
    assert [batch.key for batch in seen[0]] == ["a", "b", "c"]
    assert seen[0].table().to_pylist() == ROWS


def test_fan_in_names_the_partition_that_is_missing(project):
    made = made_by({"a": ROWS, "b": ROWS}, partitions_def=LETTERS, backfill_policy=ONE_RUN)
    project.run(made, keys=("a", "b"))
    with pytest.raises(MissingBatch, match="batch 'c' of made"):
        project.run(made, read_as(pa.Table, []), selection=["read"])


def test_an_event_carries_rows_columns_preview_and_path(project):
    made = made_by(ROWS)
    project.run(made)
    metadata = project.metadata(made)
    assert (metadata["rows_in"], metadata["dagster/row_count"], metadata["rejected"]) == (2, 2, 0)
    assert [column.name for column in metadata["dagster/column_schema"].columns] == ["id", "text"]
    assert metadata["path"] == str(project.root / "made" / "all.jsonl")
    assert "| 2 | é |" in metadata["preview"]


def test_each_partition_of_one_run_has_its_own_numbers(project):
    made = made_by({"a": ROWS, "b": ROWS[:1]}, partitions_def=LETTERS, backfill_policy=ONE_RUN)
    project.run(made, keys=("a", "b"))
    counts = [project.metadata(made, key)["dagster/row_count"] for key in ("a", "b")]
    assert counts == [2, 1]


def test_nothing_returned_is_nothing_stored(project):
    project.run(made_by(None))
    assert project.files() == []


@pytest.mark.parametrize("value", ["text", 3, [1, 2], {"id": [1]}])
def test_a_value_that_is_no_table_is_refused_with_its_type(project, value):
    with pytest.raises(ConfigError, match=f"returned {type(value).__name__}"):
        project.run(made_by(value))


def test_a_data_frame_of_another_package_is_refused_with_its_name(project):
    with pytest.raises(ConfigError, match=r"returned polars\.DataFrame; expected a pyarrow Table"):
        project.run(made_by(pl.DataFrame(ROWS)))


def test_a_column_that_has_no_exact_form_is_refused_by_name(project):
    table = pa.table({"raw": pa.array([b"\xff"], pa.binary())})
    with pytest.raises(UnwritableValue, match="'raw'"):
        project.run(made_by(table))


def test_a_wrong_format_is_refused_before_the_run(tmp_path):
    with pytest.raises(Exception, match="format"):
        StepFilesIOManager(root=str(tmp_path), format="xml")


def test_storing_again_replaces_the_file_and_counts_the_generation(project):
    project.run(made_by(ROWS))
    again = made_by(ROWS[:1])
    project.run(again)
    assert project.lines("made/all.jsonl") == ROWS[:1]
    assert project.metadata(again)["generation"] == 2
