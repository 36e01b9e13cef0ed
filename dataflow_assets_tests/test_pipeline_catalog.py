"""Which pipelines there are, by name and by file."""

import os
from pathlib import Path

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.pipeline import Pipeline, Step
from dataflow_assets.pipeline import catalog as catalog_module
from dataflow_assets.pipeline.catalog import catalog, find_pipeline, register_pipeline
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets_tests.pipeline_files import STEP


@pytest.fixture(autouse=True)
def _no_other_pipelines(monkeypatch):
    monkeypatch.setattr(catalog_module, "_registered", {})
    monkeypatch.delenv("DATAFLOW_PIPELINES", raising=False)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("DATAFLOW_PIPELINES", str(tmp_path))
    return tmp_path


def _write(file: Path, name: str) -> str:
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"name: {name}\nsource: {{path: x}}\n{STEP}")
    return str(file)


def _built(name: str, batch_rows: int = 5, step: str = "one") -> Pipeline:
    steps = [Step(name=step, type="made_suffix")]
    return Pipeline(name=name, source=SourceSpec(path="x"), batch_rows=batch_rows, steps=steps)


def test_every_shipped_pipeline_loads():
    assert all(pipeline.name == name for name, pipeline in catalog().items())


def test_the_files_of_several_folders_are_there(tmp_path, monkeypatch):
    _write(tmp_path / "a" / "one.yaml", "one")
    _write(tmp_path / "a" / "two.yml", "two")
    _write(tmp_path / "a" / ".hidden.yaml", "hidden")
    (tmp_path / "a" / "readme.txt").write_text("no pipeline")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "three.json").write_text(
        '{"name": "three", "source": {"path": "x"}, "steps": [{"name": "a", "type": "made_suffix"}]}'
    )
    monkeypatch.setenv("DATAFLOW_PIPELINES", f"{tmp_path / 'a'}{os.pathsep}{tmp_path / 'b'}{os.pathsep}")
    assert {"one", "two", "three"} <= set(catalog()) and "hidden" not in catalog()


def test_a_folder_that_is_named_twice_is_read_once(tmp_path, monkeypatch):
    _write(tmp_path / "one.yaml", "one")
    monkeypatch.setenv("DATAFLOW_PIPELINES", f"{tmp_path}{os.pathsep}{tmp_path}/.")
    assert "one" in catalog()


def test_a_registered_pipeline_is_there_and_may_be_registered_again():
    register_pipeline(_built("mine"))
    register_pipeline(_built("mine"))
    assert catalog()["mine"].batch_rows == 5


def test_another_pipeline_of_a_registered_name_is_refused_unless_it_replaces_it():
    register_pipeline(_built("mine"))
    with pytest.raises(
        ConfigError, match=r"two pipelines are called 'mine': .*catalog.py:\d+ and .*catalog.py:\d+"
    ):
        register_pipeline(_built("mine", 6))
    register_pipeline(_built("mine", 6), replace=True)
    assert catalog()["mine"].batch_rows == 6


def test_the_files_of_dagster_beside_pipelines_are_none(folder):
    _write(folder / "one.yaml", "one")
    for name in ("workspace.yaml", "dagster.yaml"):
        (folder / name).write_text("load_from: []")
    assert "one" in catalog()


def test_two_files_of_a_name_are_refused_with_both_places(folder):
    first, second = _write(folder / "a.yaml", "same"), _write(folder / "b.yaml", "same")
    with pytest.raises(ConfigError, match=f"two pipelines are called 'same': {first} and {second}"):
        catalog()
    with pytest.raises(ConfigError, match="two pipelines are called 'same'"):
        find_pipeline("same")


def test_a_file_and_a_registered_pipeline_of_a_name_are_refused(folder):
    file = _write(folder / "a.yaml", "mine")
    register_pipeline(_built("mine"))
    with pytest.raises(
        ConfigError, match=f"two pipelines are called 'mine': {file} and .*test_pipeline_catalog.py"
    ):
        catalog()


@pytest.mark.parametrize("names", [("a-b", "a_b"), ("a_b", "a-b")])
def test_two_files_of_a_name_in_dagster_are_refused_with_both_places(folder, names):
    places = [_write(folder / f"{name}.yaml", name) for name in names]
    with pytest.raises(ConfigError) as raised:
        catalog()
    (line,) = raised.value.problems
    assert line.startswith("'a-b/source' and 'a_b/source' have one name in Dagster, 'a_b__source': ")
    assert all(place in line for place in places)


def test_pipelines_whose_steps_have_one_name_in_dagster_are_refused():
    register_pipeline(_built("a__b"))
    register_pipeline(_built("a", step="b__one"))
    with pytest.raises(ConfigError, match="'a/b__one' and 'a__b/one' have one name in Dagster"):
        catalog()


def test_a_pipeline_named_like_a_step_of_another_in_dagster_is_fine():
    register_pipeline(_built("a__one"))
    register_pipeline(_built("a"))
    assert {"a", "a__one"} <= set(catalog())


def test_a_name_is_found_beside_one_that_is_the_same_in_dagster(folder):
    _write(folder / "one.yaml", "a-b")
    _write(folder / "two.yaml", "a_b")
    assert find_pipeline("a-b").name == "a-b"


def test_the_mistakes_of_all_files_come_together(folder):
    (folder / "a.yaml").write_text("")
    (folder / "b.json").write_text("{")
    with pytest.raises(ConfigError) as raised:
        catalog()
    assert [line.split(":")[0] for line in raised.value.problems] == [
        str(folder / "a.yaml"),
        str(folder / "b.json"),
    ]


def test_a_folder_that_is_not_there_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("DATAFLOW_PIPELINES", str(tmp_path / "nowhere"))
    with pytest.raises(
        ConfigError, match=r"DATAFLOW_PIPELINES: the folder .*nowhere cannot be read: No such file"
    ):
        catalog()


def test_a_name_is_found_beside_broken_files(folder):
    _write(folder / "good.yaml", "good")
    (folder / "bad.yaml").write_text("")
    assert find_pipeline("good").name == "good"


def test_an_unknown_name_is_told_with_near_names_and_broken_files(folder):
    _write(folder / "good.yaml", "text_good")
    (folder / "bad.yaml").write_text("")
    with pytest.raises(ConfigError) as raised:
        find_pipeline("text_goood")
    first, second = raised.value.problems
    assert first.endswith("did you mean 'text_good'?") and second.startswith(str(folder / "bad.yaml"))


def test_a_file_is_found_by_its_path(tmp_path, monkeypatch):
    _write(tmp_path / "sub" / "p.yaml", "p")
    monkeypatch.chdir(tmp_path / "sub")
    assert find_pipeline("p.yaml").name == find_pipeline("../sub/p.yaml").name == "p"


@pytest.mark.parametrize("name", ["nosuch.yaml", "sub/nosuch", "..", "/", "", "a\0b", "\x1b[31m", "x" * 5000])
def test_what_is_no_pipeline_is_a_config_error(name):
    with pytest.raises(ConfigError) as raised:
        find_pipeline(name)
    assert str(raised.value).isprintable()
