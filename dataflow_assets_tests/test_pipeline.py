"""Pipelines built in Python, their graph, and what a command line may change."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from dataflow_assets.errors import ConfigError
from dataflow_assets.pipeline import Pipeline, Step
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets_tests.pipeline_files import HEAD, STEP, load, mistakes

SOURCE = SourceSpec(path="in.jsonl")


def _steps(**parents: list[str] | None) -> list[Step]:
    return [Step(name=name, type="made_suffix", depends_on=above) for name, above in parents.items()]


def _pipeline(**parents: list[str] | None) -> Pipeline:
    return Pipeline(name="four", source=SOURCE, steps=_steps(**parents))


def test_defaults_are_those_of_the_readme():
    pipeline = _pipeline(a=None)
    assert (pipeline.batch_rows, pipeline.batch_bytes, pipeline.format) == (10_000, 64 * 2**20, "jsonl")
    assert (pipeline.prefix, pipeline.root, pipeline.workers, pipeline.allow_pickle) == (
        "four",
        None,
        None,
        False,
    )
    assert (pipeline.base_dir, pipeline.file) == (Path.cwd(), None)


def test_a_mistake_in_python_is_a_config_error_with_all_lines():
    with pytest.raises(ConfigError) as raised:
        Pipeline(name="Four", source=SOURCE, batch_rows=0, steps=_steps(a=["b"]))
    assert [line[:17] for line in raised.value.problems] == ["pipeline 'Four': "] * 3
    assert not isinstance(raised.value, ValidationError)


def test_a_mistake_in_a_step_is_a_config_error_that_names_the_step():
    with pytest.raises(ConfigError, match=r"^step 'A' \(x\): name: becomes the name of a folder"):
        Step(name="A", type="x")


def test_an_unknown_field_in_python_is_a_config_error():
    with pytest.raises(ConfigError, match=r"there is no field 'param' .*did you mean 'params'"):
        Step(name="a", type="x", param={})  # pyright: ignore


def test_plain_data_is_taken_in_python_too():
    data = {"name": "a", "source": {"path": "x"}, "steps": [{"name": "one", "type": "made_suffix"}]}
    assert Pipeline(**data).step("one").params == {}  # pyright: ignore
    assert Pipeline.model_validate(data).steps == Pipeline(**data).steps  # pyright: ignore


def test_a_pipeline_is_frozen():
    with pytest.raises(ValidationError):
        _pipeline(a=None).name = "b"


def test_a_step_follows_the_one_before_and_the_first_the_source():
    pipeline = _pipeline(a=None, b=None, c=["a"], d=[], e=["source", "c"])
    assert [pipeline.parents(step) for step in "abcde"] == [
        ["source"],
        ["a"],
        ["a"],
        ["source"],
        ["source", "c"],
    ]
    assert pipeline.children("a") == ["b", "c"]
    assert pipeline.children("source") == ["a", "d", "e"]
    assert pipeline.children("e") == []


def test_numbers_follow_the_graph_and_the_file_where_it_leaves_a_choice():
    pipeline = _pipeline(late=["x", "y"], y=[], x=["y"], free=[], tail=["late"])
    assert [step.name for step in pipeline.ordered_steps] == ["y", "x", "late", "free", "tail"]
    assert pipeline.step_number("late") == 3
    assert pipeline.step_number(pipeline.step("tail")) == 5


def test_a_long_chain_is_no_trouble():
    pipeline = Pipeline(name="long", source=SOURCE, steps=_steps(**{f"s{n}": None for n in range(1500)}))
    assert pipeline.step_number("s1499") == 1500


def test_an_unknown_step_is_refused_with_near_names():
    with pytest.raises(ConfigError, match=r"no step 'cleen' \(it has: clean\); did you mean 'clean'"):
        _pipeline(clean=None).operator("cleen")


def test_an_operator_is_made_once():
    pipeline = _pipeline(a=None)
    assert pipeline.operator("a") is pipeline.operator(pipeline.steps[0])


def test_a_pipeline_goes_through_pickle(tmp_path, monkeypatch):
    monkeypatch.setenv("N", "4")
    text = HEAD + "steps:\n- {name: a, type: made_chunk, params: {chunk_size: '${N}'}}\n"
    pipeline = load(tmp_path, text)
    copy = pickle.loads(pickle.dumps(pipeline))
    assert copy == pipeline and copy.place("a") == pipeline.place("a")
    assert copy.operator("a").params.chunk_size == 4


def test_equal_files_are_equal_pipelines(tmp_path):
    assert load(tmp_path, HEAD + STEP) == load(tmp_path, HEAD + STEP)
    assert load(tmp_path, HEAD + STEP) != load(tmp_path, HEAD + STEP + "batch_rows: 1\n")


def test_a_file_knows_its_folder_and_the_lines_of_its_steps(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(HEAD + STEP + "root: out\n")
    pipeline = load_pipeline("p.yaml")
    assert (pipeline.base_dir, pipeline.file) == (tmp_path, Path("p.yaml"))
    assert pipeline.place("one") == "p.yaml:4: step 1 'one' (made_suffix)"
    assert pipeline.resolved_root == str(tmp_path / "out")


def test_the_command_line_overrides_and_counts_its_paths_from_the_working_folder(tmp_path, monkeypatch):
    pipeline = load(tmp_path, HEAD + STEP + "root: out\nworkers: 2\n")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    changed = pipeline.with_changes(input="a.csv", root="r", format="csv", batch_rows=7)
    assert changed.source.path == str(tmp_path / "here" / "a.csv")
    assert changed.resolved_root == str(tmp_path / "here" / "r")
    assert (changed.format, changed.batch_rows, changed.workers) == ("csv", 7, 2)
    assert pipeline.with_changes() == pipeline and changed.place("one") == pipeline.place("one")


def test_a_url_stays_as_it_is():
    changed = _pipeline(a=None).with_changes(root="s3://bucket/x", input="s3://bucket/in.jsonl")
    assert changed.resolved_root == "s3://bucket/x" and changed.source.path == "s3://bucket/in.jsonl"


def test_an_override_that_is_wrong_is_a_config_error():
    with pytest.raises(ConfigError, match="pipeline 'four': allow_pickle: format pickle"):
        _pipeline(a=None).with_changes(format="pickle")
    with pytest.raises(ConfigError, match="batch_rows: input should be greater"):
        _pipeline(a=None).with_changes(batch_rows=0)


def test_pickle_is_a_format_where_it_is_allowed():
    assert Pipeline(name="a", source=SOURCE, format="pickle", allow_pickle=True, steps=_steps(a=None))


def test_code_beside_a_file_is_found_and_its_folder_is_on_the_path_once(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    code = "from dataflow_assets_tests.pipeline_operators import AddSuffix\nclass Mine(AddSuffix): pass\n"
    (tmp_path / "code_beside_a_file.py").write_text(code)
    text = HEAD + "steps:\n- {name: a, type: 'code_beside_a_file:Mine', params: {suffix: x}}\n"
    assert type(load(tmp_path, text).operator("a")).__name__ == "Mine"
    load(tmp_path, text)
    assert sys.path.count(str(tmp_path)) == 1 and sys.path[-1] == str(tmp_path)


def test_a_module_that_exits_when_it_is_imported_is_a_mistake(tmp_path):
    (tmp_path / "module_that_exits.py").write_text("raise SystemExit(7)")
    (line,) = mistakes(tmp_path, HEAD + "steps:\n- {name: a, type: 'module_that_exits:X'}\n")
    assert "operator 'module_that_exits:X' cannot be loaded: SystemExit: 7" in line


def test_nothing_heavy_is_imported():
    heavy = "{'dagster', 'pandas', 'torch', 'ray', 'datasets'}"
    code = f"import sys, dataflow_assets.pipeline.catalog; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
