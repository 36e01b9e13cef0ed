"""The UI's side: what `dagster dev -w workspace.yaml` shows and does, asked as the UI asks."""

import contextlib
import subprocess
import sys

import pytest

from dataflow_assets_tests.dagster_side.subprocesses import with_package_path
from dataflow_assets_tests.dagster_side.waiting import wait_until
from dataflow_assets_tests.dagster_side.webserver import LOCATION

SERVED = ["served/lower", "served/long-enough", "served/unique_state", "served/unique", "served/last"]
STEPS = ["lower", "long-enough", "unique", "last"]
ALL = ("a_b00000", "a_b00005")
EVENT = """assetMaterializations(partitions: ["a_b00000"], limit: 1) { metadataEntries {
    __typename label ... on IntMetadataEntry { intValue } ... on MarkdownMetadataEntry { mdStr }
    ... on TableSchemaMetadataEntry { schema { columns { name type } } }
    ... on PathMetadataEntry { path } } }"""


@pytest.fixture(scope="module")
def made(deployment):
    """The deployment after one launch of the source and one of all steps over all batches."""
    assert deployment.server.run("served/source") == "SUCCESS"
    assert deployment.server.run(*SERVED, keys=ALL) == "SUCCESS"
    return deployment


def test_the_workspace_loads_without_an_error(deployment):
    assert deployment.server.load_error() is None


def test_the_graph_shows_each_step_after_its_parents(deployment):
    graph = deployment.server.graph("served")
    deps = {name: {key["path"][1] for key in node["dependencyKeys"]} for name, node in graph.items()}
    assert deps == {
        "served/source": set(),
        "served/lower": {"source"},
        "served/long-enough": {"lower"},
        "served/unique_state": {"long-enough"},
        "served/unique": {"long-enough", "unique_state"},
        "served/last": {"unique"},
    }
    assert [name for name, node in graph.items() if not node["isPartitioned"]] == [
        "served/source",
        "served/unique_state",
    ]


def test_a_pipeline_with_a_dash_is_a_group_with_an_underscore(deployment):
    assert "gated-one/after" in deployment.server.graph("gated_one")


def test_sensors_and_schedules_are_there_and_off(deployment):
    query = """query($r: RepositorySelector!) {
        sensorsOrError(repositorySelector: $r) { ... on Sensors {
            results { name sensorState { status } } } }
        schedulesOrError(repositorySelector: $r) { ... on Schedules {
            results { name scheduleState { status } } } } }"""
    found = deployment.server.query(query, r=LOCATION)
    sensors = {entry["name"]: entry["sensorState"]["status"] for entry in found["sensorsOrError"]["results"]}
    schedules = {entry["name"]: entry["scheduleState"] for entry in found["schedulesOrError"]["results"]}
    assert sensors["served_watch"] == sensors["gated_one_watch"] == "STOPPED"
    assert schedules["served_daily"]["status"] == "STOPPED"


def test_a_launched_range_makes_its_batches_and_is_shown_as_materialized(made):
    for step in STEPS:
        assert made.server.materialized(f"served/{step}") == made.committed("served", step)
        assert len(made.committed("served", step)) == 6


def test_the_newest_event_of_a_batch_shows_numbers_columns_and_preview(made):
    entries = made.server.asset("served/lower", EVENT)["assetMaterializations"][0]["metadataEntries"]
    by_label = {entry["label"]: entry for entry in entries}
    assert by_label["rows_in"]["intValue"] == by_label["dagster/row_count"]["intValue"] == 2
    assert [column["name"] for column in by_label["dagster/column_schema"]["schema"]["columns"]] == [
        "row_id",
        "text",
    ]
    assert "row 0 \\| &lt;b&gt;" in by_label["preview"]["mdStr"]
    assert by_label["path"]["path"].endswith("served_step1/a_b00000.jsonl")


def test_nothing_that_was_just_made_is_stale(made):
    for name in ["served/source", *SERVED]:
        batch = '(partition: "a_b00003")' if name.split("/")[1] in STEPS else ""
        assert made.server.asset(name, f"staleStatus{batch}")["staleStatus"] == "FRESH"


def test_a_backfill_of_gaps_and_a_finished_batch_fills_the_gaps_and_completes(made):
    folder = made.work("served").folder_of("last")
    gaps = ["a_b00001", "a_b00002", "a_b00004"]
    for batch in gaps:
        folder.remove(batch)
    assert made.server.backfill(["served/last"], [*gaps, "a_b00005"]) == "COMPLETED_SUCCESS"
    assert made.committed("served", "last") == made.server.materialized("served/last")
    assert len(made.committed("served", "last")) == 6


def test_a_terminated_run_is_canceled_and_its_batches_are_exact_and_a_second_one_queued(deployment):
    server = deployment.server
    assert server.run("gated-one/source") == "SUCCESS"
    deployment.open_gate("g0", "g1")
    run = server.launch("gated-one/gated", "gated-one/after", keys=("a_b00000", "a_b00003"))
    wait_until(lambda: deployment.came_to_gate("g2"))
    second = server.launch("gated-one/after", keys=("a_b00000", "a_b00000"))
    server.terminate(run)
    assert server.status(second) == "QUEUED"
    deployment.open_gate("g2", "g3", "g4", "g5")
    assert server.finish(run) == "CANCELED"
    assert server.finish(second) == "SUCCESS"
    committed = deployment.committed("gated-one", "gated")
    assert {"a_b00000", "a_b00001"} <= committed < {f"a_b0000{n}" for n in range(4)}
    assert server.materialized("gated-one/gated") == committed
    assert server.materialized("gated-one/after") == {"a_b00000"}


@contextlib.contextmanager
def command_at_gate(deployment, home):
    """`dataflow-assets run gated-one` in this Dagster home, while it waits at its last row."""
    for name in ("g7", "g7.reached"):
        (deployment.folder / "gates" / name).unlink(missing_ok=True)
    deployment.open_gate(*[f"g{n}" for n in range(7)])
    environment = {**deployment.environment, "DAGSTER_HOME": str(home)}
    command = [sys.executable, "-m", "dataflow_assets", "run", "gated-one", "--fresh"]
    process = subprocess.Popen(command, env=with_package_path(**environment), cwd=deployment.folder)
    try:
        wait_until(lambda: deployment.came_to_gate("g7"))
        yield process
        deployment.open_gate("g7")
        assert process.wait(90) == 0
    finally:
        process.kill()
        process.wait()


def test_a_launch_while_the_command_runs_in_the_same_home_waits_in_the_queue(deployment):
    with command_at_gate(deployment, deployment.folder / "home"):
        run = deployment.server.launch("gated-one/gated", keys=("a_b00000", "a_b00000"))
        wait_until(lambda: deployment.server.status(run) == "QUEUED")
    assert deployment.server.finish(run) == "SUCCESS"
    assert len(deployment.server.materialized("gated-one/after")) == 4


def test_a_launch_while_the_command_runs_in_another_home_fails_and_names_the_holder(deployment, tmp_path):
    with command_at_gate(deployment, tmp_path) as process:
        run = deployment.server.launch("gated-one/gated", keys=("a_b00000", "a_b00000"))
        assert deployment.server.finish(run) == "FAILURE"
    assert f"is being run by process {process.pid}" in deployment.server.errors(run)
