"""Case 38 through the IO manager: every partition key has its own file, or is refused before any work."""

import json

import dagster as dg
import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.io.step_files import StoredBatches
from dataflow_assets_tests.io.test_names import MAPPED, REFUSED
from dataflow_assets_tests.io.user_assets import ONE_RUN, UserProject

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
PARTITIONS = dg.DynamicPartitionsDefinition(name="case_38")


@dg.asset(partitions_def=PARTITIONS, backfill_policy=ONE_RUN)
def written(context: dg.AssetExecutionContext):
    rows = {key: [{"key": key}] for key in context.partition_keys}
    return rows if len(rows) > 1 else rows[context.partition_keys[0]]


@pytest.fixture
def project(tmp_path):
    return UserProject(tmp_path / "two" / "deep")


def write(project, keys):
    project.instance.add_dynamic_partitions("case_38", keys)
    project.run(written, keys=(keys[0], keys[-1]))


@pytest.mark.parametrize("order", [MAPPED, MAPPED[::-1]], ids=["given", "reversed"])
def test_every_key_of_case_38_is_read_back_with_its_own_row(project, order):
    seen = []

    @dg.asset
    def read(written: StoredBatches):
        seen.extend((batch.key, batch.table["key"].to_pylist()) for batch in written)

    write(project, order)
    project.run(written, read, selection=["read"])
    assert seen == [(key, [key]) for key in order]


def test_the_keys_can_be_told_from_the_listing_code_point_for_code_point(project):
    write(project, MAPPED)
    records = [project.root / name for name in project.files() if "_commits" in name]
    assert sorted(json.loads(record.read_bytes())["batch"] for record in records) == sorted(MAPPED)


def test_each_key_has_one_file_directly_in_the_folder_of_the_asset(project):
    write(project, MAPPED)
    data = [name for name in project.files() if "_commits" not in name]
    assert len({name.casefold() for name in data}) == len(MAPPED)
    assert all(name.count("/") == 1 and name.endswith(".jsonl") for name in data)


def test_nothing_appears_outside_of_the_root(project, tmp_path):
    write(project, MAPPED)
    assert [path.name for path in tmp_path.iterdir()] == ["two"]
    assert [path.name for path in (tmp_path / "two").iterdir()] == ["deep"]


@pytest.mark.parametrize("order", [["a", "a/b"], ["a/b", "a"]], ids=" then ".join)
def test_a_key_and_a_key_below_it_exist_together_one_run_each(project, order):
    for key in order:
        project.instance.add_dynamic_partitions("case_38", [key])
        project.run(written, partition=key)
    rows = [
        json.loads((project.root / name).read_text()) for name in project.files() if "_commits" not in name
    ]
    assert sorted(row["key"] for row in rows) == ["a", "a/b"]


@pytest.mark.parametrize("key", [key for key in REFUSED if key])
def test_a_key_that_dagster_cannot_address_is_refused_before_its_neighbours_are_stored(project, key):
    with pytest.raises(ConfigError) as refusal:
        write(project, ["first", key])
    assert repr(key) in str(refusal.value)
    assert project.files() == []


def test_a_key_with_a_comma_is_run_and_read_alone(project):
    project.instance.add_dynamic_partitions("case_38", ["a,b", "c"])
    project.run(written, partition="a,b")
    assert project.metadata(written, "a,b")["dagster/row_count"] == 1
