"""The definitions of a deployment: every known pipeline, loaded fast, with nothing heavy."""

import json
import subprocess
import sys

import dagster as dg
import pytest

from dataflow_assets.definitions import definitions_of
from dataflow_assets.errors import ConfigError
from dataflow_assets.pipeline.catalog import catalog, usable
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.dagster_side.small_pipelines import STEPS, write_pipeline
from dataflow_assets_tests.dagster_side.subprocesses import with_package_path

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
HEAVY = ["ray", "torch", "transformers", "datasets"]


def test_names_with_a_dash_become_groups_jobs_and_sensors_with_an_underscore(tmp_path):
    definitions = definitions_of([load_pipeline(write_pipeline(tmp_path, "my-own"))])
    graph = definitions.resolve_asset_graph()
    assert {node.group_name for node in graph.asset_nodes} == {"my_own"}
    assert {"my-own/long-enough", "my-own/source"} <= {
        key.to_user_string() for key in graph.get_all_asset_keys()
    }
    assert definitions.resolve_job_def("my_own_read_source").name == "my_own_read_source"


def test_two_pipelines_live_in_one_deployment_without_touching(tmp_path):
    pipelines = [load_pipeline(write_pipeline(tmp_path, name)) for name in ("one", "two")]
    graph = definitions_of(pipelines).resolve_asset_graph()
    assert {key.path[0] for key in graph.get_all_asset_keys()} == {"one", "two"}
    for key in graph.get_all_asset_keys():
        assert all(parent.path[0] == key.path[0] for parent in graph.get(key).parent_keys)


def test_each_pipeline_has_its_own_partitions(tmp_path):
    pipelines = [load_pipeline(write_pipeline(tmp_path, name)) for name in ("one", "two")]
    graph = definitions_of(pipelines).resolve_asset_graph()
    nodes = [node for node in graph.asset_nodes if node.is_partitioned]
    named = {(node.key.path[0], node.partitions_def.name) for node in nodes}
    assert named == {("one", "one"), ("two", "two")}


def test_broken_and_foreign_files_are_told_and_the_others_loaded(tmp_path, monkeypatch):
    write_pipeline(tmp_path, "one", "  - {name: a, type: lowercas}\n")
    write_pipeline(tmp_path, "good")
    write_pipeline(tmp_path, "a-b")
    write_pipeline(tmp_path, "a_b")
    (tmp_path / "docker-compose.yaml").write_text("services: {db: {image: postgres}}\n")
    monkeypatch.setenv("DATAFLOW_PIPELINES", str(tmp_path))
    pipelines, problems = usable()
    assert "good" in pipelines and "text_clean" in pipelines and not {"one", "a-b", "a_b"} & set(pipelines)
    graph = definitions_of(pipelines.values(), problems).resolve_asset_graph()
    assert {"good", "pipelines_that_are_not_loaded"} <= {key.path[0] for key in graph.get_all_asset_keys()}
    told = graph.get(dg.AssetKey("pipelines_that_are_not_loaded")).description
    assert all(name in told for name in ("one.yaml", "docker-compose.yaml", "a-b.yaml", "a_b.yaml"))
    with pytest.raises(ConfigError) as broken:
        catalog()
    assert broken.value.problems == problems


def test_the_definitions_load_without_the_heavy_libraries(tmp_path):
    loaded = f"print(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    code = f"import json, sys, dataflow_assets.definitions; {loaded}"
    command = [sys.executable, "-W", "ignore", "-c", code]
    output = subprocess.run(command, capture_output=True, check=True, cwd=tmp_path, env=with_package_path())
    assert json.loads(output.stdout) == []


def test_loading_the_definitions_makes_no_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DATAFLOW_ROOT", str(tmp_path / "root"))
    definitions_of([load_pipeline(write_pipeline(tmp_path, "one"))]).resolve_asset_graph()
    assert not (tmp_path / "root").exists()


def test_a_step_shows_its_operator_parameters_and_code_version(tmp_path):
    graph = definitions_of([load_pipeline(write_pipeline(tmp_path, "one", STEPS))]).resolve_asset_graph()
    node = next(node for node in graph.asset_nodes if node.key.path[-1] == "long-enough")
    assert node.tags.items() >= {"dataflow/operator": "filter_length", "dataflow/step": "2"}.items()
    assert node.metadata["params"]["min_chars"] == 2
    assert node.code_version
    assert node.description.startswith("Step 2, `filter_length`: ")


def _paths(pipeline_file) -> dict[str, str]:
    graph = definitions_of([load_pipeline(pipeline_file)]).resolve_asset_graph()
    return {node.key.path[-1]: node.metadata["path"].value for node in graph.asset_nodes}


def test_each_asset_shows_the_folder_of_its_rows_as_a_path(tmp_path):
    paths = _paths(write_pipeline(tmp_path, "one", head="root: data\n"))
    folder = tmp_path / "data" / "one"
    assert paths["source"] == str(folder / "one_step0")
    assert paths["unique"] == str(folder / "one_step3")
    assert paths["unique_state"] == str(folder / "one_step3" / "_state" / "verdicts")


def test_a_step_of_one_file_shows_that_file_as_its_path(tmp_path):
    file = write_pipeline(tmp_path, "one", "  - {name: a, type: lowercase, params: {column: text}}\n")
    file.write_text(file.read_text().replace("batch_rows: 2", "batch_rows: null\nroot: data"))
    assert _paths(file)["a"] == str(tmp_path / "data" / "one" / "one_step1.jsonl")


BROKEN_IDENTITY = """from dataflow_assets.operators.refiners.text import Lowercase

class NoIdentity(Lowercase):
    def identity(self):
        raise ValueError("no such table")
"""


def test_an_operator_that_cannot_tell_its_identity_takes_no_other_pipeline_away(tmp_path, monkeypatch):
    (tmp_path / "no_identity.py").write_text(BROKEN_IDENTITY)
    write_pipeline(tmp_path, "one", "  - {name: a, type: 'no_identity:NoIdentity'}\n")
    write_pipeline(tmp_path, "good")
    monkeypatch.setenv("DATAFLOW_PIPELINES", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    pipelines, problems = usable()
    assert "good" in pipelines and "one" not in pipelines
    assert "step 1 'a'" in problems[0] and "ValueError: no such table" in problems[0]
    with pytest.raises(ConfigError, match=r"step 'a': operator .* no such table"):
        PipelineWork(load_pipeline(tmp_path / "one.yaml")).check_before_run()
