"""A pipeline.py of DataFlow and its cache become a pipeline of ours, with the same rows at the end."""

import importlib
import json
import runpy
import warnings
from pathlib import Path

import pytest
import yaml

from dataflow_assets.errors import ConfigError
from dataflow_assets.moving.adopted import adopted_file
from dataflow_assets.moving.pipeline_file import convert
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.crash.command import environment, finish, start
from dataflow_assets_tests.markdown_examples import blocks_of

DOCUMENT = Path(__file__).parents[2] / "docs/moving-from-dataflow.md"
THEIRS = """from dataflow.operators.core_text import PromptedGenerator
from dataflow.prompts.core_text import FormatStrPrompt
from dataflow.serving import APILLMServing_request
from dataflow.utils.storage import LazyFileStorage

MODEL = "gpt-4o-mini"


class Asking:
    def __init__(self):
        super().__init__()
        self.storage = LazyFileStorage(first_entry_file_name="in.jsonl", cache_path="./cache")
        self.serving = APILLMServing_request(api_url="http://h/v1/chat/completions", model_name=MODEL)
        self.prompt = FormatStrPrompt(f_str_template="Say {what}")
        self.generator = PromptedGenerator(self.serving, user_prompt="More: ")
        self.second = PromptedGenerator(llm_serving=self.serving, json_schema={"a": [self.prompt, MODEL]})

    def forward(self):
        key = "text"
        self.generator.run(storage=self.storage.step(), input_key=key, output_key="answer"),
        self.second.run(storage=self.storage.step(), input_key="answer")
        self.serving.cleanup()
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "pipeline.py"
    file.write_text(text)
    return file


def test_classes_arguments_prompts_and_servings_are_taken_over(tmp_path: Path):
    pytest.importorskip(
        "dataflow", reason="open-dataflow is not installed: it knows what arguments are called"
    )
    found = convert(written(tmp_path, THEIRS))
    serving = {
        "type": "openai",
        "model": "gpt-4o-mini",
        "base_url": "http://h/v1",
        "api_key": "${DF_API_KEY}",
    }
    prompt = {
        "object": "dataflow.prompts.core_text.FormatStrPrompt",
        "init": {"f_str_template": "Say {what}"},
    }
    operator = "core_text.PromptedGenerator"
    assert found.notes == [] and found.cache == ("./cache", "dataflow_cache_step")
    assert found.fields == {
        "name": "asking",
        "source": {"path": "in.jsonl"},
        "write": "lazy",
        "servings": {"default": serving},
        "steps": [
            {
                "name": "generator",
                "type": "opendcai_llm",
                "params": {
                    "operator": operator,
                    "init": {"user_prompt": "More: "},
                    "run": {"input_key": "text", "output_key": "answer"},
                },
            },
            {
                "name": "second",
                "type": "opendcai_llm",
                "params": {
                    "operator": operator,
                    "init": {"json_schema": {"a": [prompt, "gpt-4o-mini"]}},
                    "run": {"input_key": "answer"},
                },
            },
        ],
    }


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (
            "for n in range(3): self.generator.run(storage=self.storage.step())",
            "pipeline.py:21: for n in range(3)",
        ),
        ("self.generator.run(storage=self.storage.step(), input_key=name())", "name(): not a plain value"),
        (
            "self.nothing.run(storage=self.storage.step())",
            "expected `self.name.run(storage=self.storage.step()",
        ),
        (
            "self.generator.run(self.storage.step(), 'text', 'answer', 'too many')",
            "pipeline.py:21: self.generator.run(self.storage.step(), 'text', 'answer', 'too many'): its arg",
        ),
        ("self.generator.run(self.storage.step(), *names)", "pipeline.py:21: self.generator.run("),
        ("self.generator.run(storage=self.storage.step(), **names)", "arguments have no names; write them"),
    ],
)
def test_what_yaml_cannot_say_is_refused_with_its_line(tmp_path: Path, statement: str, why: str):
    lines = THEIRS.splitlines()
    lines[20] = f"        {statement}"
    with pytest.raises(ConfigError) as caught:
        convert(written(tmp_path, "\n".join(lines)))
    assert why in str(caught.value)


def test_an_operator_whose_names_are_not_known_takes_none_by_position(tmp_path: Path):
    text = THEIRS.replace("dataflow.operators.core_text import", "nowhere.to_be_found import")
    text = text.replace("PromptedGenerator(self.serving, ", "PromptedGenerator(llm_serving=self.serving, ")
    text = text.replace("storage=self.storage.step(), input_key=key", "self.storage.step(), key")
    with pytest.raises(ConfigError, match=r"pipeline\.py:20: .*write them as `name=value`"):
        convert(written(tmp_path, text))


def test_run_takes_arguments_by_position_and_one_operator_is_several_steps(tmp_path: Path):
    pytest.importorskip("dataflow", reason="open-dataflow is not installed")
    text = THEIRS.replace("storage=self.storage.step(), input_key=key", "self.storage.step(), key").replace(
        'self.second.run(storage=self.storage.step(), input_key="answer")',
        "self.generator.run(self.storage.step(), 'a', 'b'); self.generator.run(self.storage.step())",
    )
    steps = convert(written(tmp_path, text)).fields["steps"]
    assert isinstance(steps, list)
    assert [(step["name"], step["params"].get("run")) for step in steps] == [
        ("generator", {"input_key": "text", "output_key": "answer"}),
        ("generator_2", {"input_key": "a", "output_key": "b"}),
        ("generator_3", None),
    ]


def test_a_number_is_not_given_twice(tmp_path: Path):
    pytest.importorskip("dataflow", reason="open-dataflow is not installed")
    text = THEIRS.replace("self.second", "self.generator_2").replace(
        "        self.serving.cleanup()", "        self.generator.run(self.storage.step())"
    )
    steps = convert(written(tmp_path, text)).fields["steps"]
    assert isinstance(steps, list)
    assert [step["name"] for step in steps] == ["generator", "generator_2", "generator_3"]


def test_most_of_their_shipped_pipelines_are_taken_over():
    dataflow = pytest.importorskip("dataflow", reason="open-dataflow is not installed")
    files = sorted(Path(dataflow.__file__).parent.glob("statics/pipelines/*/**/*.py"))
    taken = []
    for file in files:
        try:
            taken.append(adopted_file(file, None, None, None, False))
        except ConfigError as error:
            assert file.name in str(error)
    assert (len(taken), len(files)) == (33, 49)


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """The folder of the guide's pipeline.py after it was run by DataFlow."""
    pytest.importorskip("dataflow", reason="open-dataflow is not installed")
    for block in blocks_of(DOCUMENT):
        if block.title:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.chdir(tmp_path)
        runpy.run_path(str(tmp_path / "pipeline.py"), run_name="__main__")
    return tmp_path


def rows_of(file: Path) -> list[dict]:
    """The rows without what is ours."""
    rows = (json.loads(line) for line in file.read_text("utf-8").split("\n") if line)
    return [{name: value for name, value in row.items() if name != "row_id"} for row in rows]


def test_the_adopted_pipeline_ends_in_the_same_rows(ran: Path, command_here: Command):
    assert command_here(ran, "adopt", "pipeline.py").code == 0
    done = finish(start(ran, "run", "pages.yaml", env=environment({"DAGSTER_HOME": str(ran / "home")})))
    assert done.code == 0, done.err
    ours = [
        row for file in sorted(ran.glob("dataflow_data/pages/pages_step3/*.jsonl")) for row in rows_of(file)
    ]
    assert ours == rows_of(ran / "cache/pages_step3.jsonl")


def test_from_the_cache_only_the_rest_is_done(ran: Path, command_here: Command):
    (ran / "cache/pages_step3.jsonl").unlink()
    said = command_here(ran, "adopt", "pipeline.py", "--from-cache", "--to", "rest.yaml").out
    assert "pages_step2.jsonl: whole, as far as its end shows <- read on from here" in said
    rest = load_pipeline(ran / "rest.yaml")
    assert [step.name for step in rest.steps] == ["long_enough"]
    assert rest.source.path == "cache/pages_step2.jsonl"


def test_a_folder_becomes_a_pipeline_that_reads_its_last_step(ran: Path, command_here: Command):
    said = command_here(ran, "adopt", "cache", "--to", "next.yaml")
    assert said.code == 0 and "put yours in its place" in said.out
    assert yaml.safe_load((ran / "next.yaml").read_text())["source"] == {"path": "cache/pages_step3.jsonl"}
    assert command_here(ran, "validate", "next.yaml").code == 0


def test_nothing_is_overwritten(ran: Path, command_here: Command):
    (ran / "pages.yaml").write_text("mine")
    refused = command_here(ran, "adopt", "pipeline.py")
    assert refused.code == 2 and "exists and is left as it is" in refused.err
    assert (ran / "pages.yaml").read_text() == "mine"


def test_their_storage_reads_the_files_of_our_whole_file_mode(ran: Path, command_here: Command):
    command_here(ran, "adopt", "pipeline.py")
    fields = yaml.safe_load((ran / "pages.yaml").read_text())
    (ran / "pages.yaml").write_text(yaml.safe_dump({**fields, "batch_rows": None}))
    done = finish(start(ran, "run", "pages.yaml", env=environment({"DAGSTER_HOME": str(ran / "home")})))
    assert done.code == 0, done.err
    storage = importlib.import_module("dataflow.utils.storage").FileStorage(
        "pages.jsonl", str(ran / "dataflow_data/pages"), "pages"
    )
    storage.operator_step = 3
    assert storage.read("dict") and [row["text"] for row in storage.read("dict")] == [
        row["text"] for row in rows_of(ran / "cache/pages_step3.jsonl")
    ]


@pytest.mark.parametrize(
    ("first", "source"),
    [
        ("hf:org/name", {"hf": "org/name"}),
        ("hf:org/name:test", {"hf": "org/name::test"}),
        ("hf:org/name:main:test", {"hf": "org/name:main:test"}),
        ("ms:org/name:test", {"ms": "org/name::test"}),
    ],
)
def test_a_data_set_of_a_hub_is_taken_over(tmp_path: Path, first: str, source: dict[str, str]):
    pytest.importorskip("dataflow", reason="open-dataflow is not installed")
    file = written(tmp_path, THEIRS.replace("in.jsonl", first))
    assert adopted_file(file, None, None, None, False).fields["source"] == source
