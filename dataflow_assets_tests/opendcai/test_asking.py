"""Operators of open-dataflow that ask a model: equal rows, and nothing paid or hidden that should not be."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets_tests.fault_server import FaultServer
from dataflow_assets_tests.llm.project import Project
from dataflow_assets_tests.opendcai.beside import Case, ours, theirs

pytest.importorskip("dataflow", reason="open-dataflow is not installed")
OWN = "dataflow_assets_tests.opendcai.frame_functions"
TEXT = {"input_key": "text"}
TEXTS = ["Water boils at 100 degrees.", "水在一百度沸腾。", "Ice is cold.", "Why not?", "Four of five: 4"]
STRINGS = {"columns": {"answer": "string"}}
PROMPT = {
    "object": "dataflow.prompts.core_text.FormatStrPrompt",
    "init": {"f_str_template": "Say more of: {what}"},
}
CASES = {
    "prompted": Case(
        "PromptedGenerator",
        {**TEXT, "output_key": "answer"},
        {"user_prompt": "More: "},
        STRINGS,
        "opendcai_llm",
    ),
    "formatted": Case(
        "FormatStrPromptedGenerator",
        {"what": "text", "output_key": "answer"},
        {"prompt_template": PROMPT},
        STRINGS,
        "opendcai_llm",
    ),
    "refined": Case("PromptedRefiner", TEXT, {"system_prompt": "Make it better."}, {}, "opendcai_llm"),
    "graded": Case(
        "PromptedFilter",
        {**TEXT, "output_key": "grade"},
        {"min_score": 4},
        {"columns": {"grade": "int64"}},
        "opendcai_llm",
    ),
    "asked": Case(
        "Text2QAGenerator",
        {**TEXT, "input_question_num": 2},
        {},
        {"columns": {f"generated_{name}": "string" for name in ("prompt", "question", "answer")}},
        "opendcai_llm",
    ),
}
ANSWERS = {
    TEXTS[4]: "5",
    "1 to 5": "3",
    "Make it better": "better",
    "Q:": "Q: What boils?\nA: Water does.",
    "prompt": '["Ask one thing. ", "Ask another. "]',
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A few texts."""
    file = tmp_path / "texts.jsonl"
    rows = (json.dumps({"text": text, "n": n}, ensure_ascii=False) for n, text in enumerate(TEXTS))
    file.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return file


@pytest.fixture
def server(fault_server: FaultServer) -> FaultServer:
    """Answers what the operators can read."""
    for contains, text in ANSWERS.items():
        fault_server.rule({"kind": "ok", "text": text}, contains=contains)
    return fault_server


def their_serving() -> Any:
    """Their client of OpenAI-compatible servers; the package around it imports those of Google too."""
    folder = Path(importlib.util.find_spec("dataflow").submodule_search_locations[0], "serving")
    name = "api_llm_serving_request"
    spec = importlib.util.spec_from_file_location(f"dataflow.serving.{name}", folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.APILLMServing_request


def test_the_rows_are_those_of_their_own_pipeline(
    server: FaultServer, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DF_API_KEY", "any")
    serving = their_serving()(f"{server.url}/chat/completions", model_name="m", max_workers=4)
    expected = {
        name: theirs(tmp_path / name, source, case, llm_serving=serving) for name, case in CASES.items()
    }
    openai = {"type": "openai", "model": "m", "base_url": server.url, "api_key": "any"}
    made = ours(tmp_path, source, CASES, batch_rows=2, servings={"default": openai})
    assert made == expected
    assert {name: len(rows) for name, rows in made.items()} == {
        "prompted": 5,
        "formatted": 5,
        "refined": 5,
        "graded": 1,
        "asked": 8,
    }


def asks(operator: str, folder: Path, server: FaultServer, texts: list[str]) -> Project:
    """A project with one step that runs the operator."""
    params = {"operator": operator, "run": {"output_key": "answer", **TEXT}, **STRINGS}
    step = {"name": "answered", "type": "opendcai_llm", "params": params}
    return Project(folder, server, texts, steps=[step])


def test_a_failed_call_fails_its_row_whatever_the_operator_makes_of_it(
    fault_server: FaultServer, tmp_path: Path
):
    fault_server.rule({"kind": "status", "status": 400}, contains="bad")
    project = asks(f"{OWN}.Swallowing", tmp_path, fault_server, ["good", "bad", "fine"])
    assert project.run().code == 5
    assert project.answers() == {"good": "good", "fine": "fine"}
    assert project.failed() == {"bad": "bad_request"}


def test_an_answer_is_paid_for_once(fault_server: FaultServer, tmp_path: Path):
    project = asks("PromptedGenerator", tmp_path, fault_server, ["one", "two", "three"])
    assert project.run().code == 0
    assert project.run("run", "--fresh").code == 0
    asked_again = fault_server.stats().requests
    project.pipeline["steps"][0]["name"] = "renamed"
    project.save()
    assert project.run().code == 0
    assert fault_server.stats().requests == asked_again


def test_an_operator_without_a_serving_is_sent_to_the_other_type():
    params = {"operator": "LowercaseRefiner", "run": TEXT}
    with pytest.raises(ConfigError, match="no argument for a serving; use the type `opendcai`"):
        build_operator("opendcai_llm", params).check_ready()


def test_one_that_looks_at_several_rows_is_refused():
    with pytest.raises(ConfigError, match="looks at several rows at once"):
        build_operator("opendcai_llm", {"operator": "ReasoningQuestionFusionGenerator"}).check_ready()
