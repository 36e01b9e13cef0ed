"""What is done through the UI's own API ends in the same files, records and statuses as by the command."""

import json

from dataflow_assets_tests.dagster_side.waiting import wait_until
from dataflow_assets_tests.ui.deployment import ASSETS, BATCHES, Deployment

KEYS = [f"a_b{number:05}" for number in range(BATCHES)]
ROWS_FAILED, PAUSED = 5, 3


def is_same(ui: Deployment, pipeline: str) -> bool:
    """Whether both left the same; the UI shows every batch as materialized."""
    assert ui.place.left(pipeline) == ui.by_command.left(pipeline)
    return ui.last_keys(pipeline) == KEYS


def test_a_launched_run(ui: Deployment) -> None:
    assert ui.launched("launched_run") == "SUCCESS"
    assert ui.by_command.command("run", "launched")[0] == 0
    assert is_same(ui, "launched")


def test_a_backfill(ui: Deployment) -> None:
    assert ui.server.run("filled/source") == "SUCCESS"
    assets = [f"filled/{name}" for name in ASSETS if name != "unique_state"]
    assert ui.server.run("filled/watched", "filled/long-enough", keys=(KEYS[0], KEYS[-1])) == "SUCCESS"
    assert ui.server.run("filled/unique_state") == "SUCCESS"
    assert ui.server.backfill(assets, KEYS) == "COMPLETED_SUCCESS"
    assert ui.by_command.command("run", "filled")[0] == 0
    assert is_same(ui, "filled")


def test_a_pause_and_going_on(ui: Deployment) -> None:
    run = ui.launch("paused_run")
    command = ui.by_command.start("run", "paused")
    for place in (ui.place, ui.by_command):
        place.open_gates(range(2))
        place.wait_at(2)
    assert ui.launched("paused_pause", reason="dinner") == "SUCCESS"
    assert ui.by_command.command("pause", "paused", "--reason", "dinner")[0] == 0
    for place in (ui.place, ui.by_command):
        place.open_gates(range(2, 2 * BATCHES))
    assert ui.server.finish(run) == "CANCELED"
    assert command.wait(90) == PAUSED
    for place in (ui.place, ui.by_command):
        status = place.status("paused")
        assert (status["state"], status["paused"]["why"]) == ("paused", "dinner")
    assert ui.launched("paused_resume") == "SUCCESS"
    assert ui.by_command.command("resume", "paused")[0] == 0
    assert is_same(ui, "paused")


def test_failed_rows_tried_again(ui: Deployment) -> None:
    assert ui.launched("retried_run") == "SUCCESS"
    assert ui.by_command.command("run", "retried")[0] == ROWS_FAILED
    assert ui.place.status("retried") == ui.by_command.status("retried")
    for place in (ui.place, ui.by_command):
        place.heal()
    assert ui.launched("retried_retry_failed", step="watched") == "SUCCESS"
    assert ui.by_command.command("retry-failed", "retried", "--step", "watched")[0] == 0
    assert is_same(ui, "retried")


def test_an_export(shop: Deployment) -> None:
    place = shop.place
    file = place.root.parent / "shop.jsonl"
    assert shop.launched("shop_export", to=str(file), allow_partial=True) == "SUCCESS"
    other = place.root.parent / "other.jsonl"
    assert place.command("export", "shop", "--to", str(other), "--allow-partial")[0] == 0
    assert file.read_bytes() == other.read_bytes()


def test_failed_rows_as_a_file_and_back(ui: Deployment) -> None:
    place = ui.place
    assert ui.launched("mended_run") == "SUCCESS"
    file = place.root.parent / "failed.jsonl"
    assert ui.launched("mended_failed_rows", to=str(file)) == "SUCCESS"
    [row] = map(json.loads, file.read_text().splitlines())
    file.write_text(json.dumps({**row, "text": "a row put right"}) + "\n")
    assert ui.launched("mended_put_back", step="scored", file=str(file)) == "SUCCESS"
    assert sum(step["failed"] for step in place.status("mended")["steps"]) == 0


def test_profiles_become_observations(shop: Deployment) -> None:
    assert shop.launched("shop_profile", steps=["tidy"]) == "SUCCESS"
    fields = (
        "assetObservations(limit: 1) { metadataEntries { label ... on JsonMetadataEntry { jsonString } } }"
    )
    [observed] = shop.server.asset("shop/tidy", fields)["assetObservations"]
    [profile] = [entry for entry in observed["metadataEntries"] if entry["label"] == "profile"]
    assert json.loads(profile["jsonString"])["rows"] == 129


def test_a_run_of_chosen_steps(ui: Deployment) -> None:
    assert ui.launched("launched_run") == "SUCCESS"
    assert ui.launched("launched_run", select=["watched"], fresh=True) == "SUCCESS"
    assert wait_until(lambda: ui.place.status("launched")["state"]) == "done"


def test_a_form_refuses_a_field_that_it_does_not_have(ui: Deployment) -> None:
    query = """query($s: PipelineSelector!, $c: RunConfigData!) {
        isPipelineConfigValid(pipeline: $s, runConfigData: $c, mode: "default") { __typename } }"""
    location = {"repositoryLocationName": "dataflow_assets.definitions", "repositoryName": "__repository__"}
    selector = {**location, "pipelineName": "launched_run"}
    found = ui.server.query(query, s=selector, c=json.dumps({"selekt": ["a"]}))
    assert found["isPipelineConfigValid"]["__typename"] == "RunConfigValidationInvalid"
