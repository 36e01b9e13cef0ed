"""Prompts of all operators: shipped ones, own ones, and what a step's fingerprint knows of them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.llm import shipped
from dataflow_assets.operators.llm.prompted import PromptedOperator
from dataflow_assets.operators.llm.shipped import prompt_template, prompt_text
from dataflow_assets.operators.registry import build_operator, operators
from dataflow_assets.text.language import LANGUAGES, language_of
from dataflow_assets_tests.operators.llm.asking import asking_operators, built, done, error_class, user

FOLDER = Path(shipped.__file__).parent / "prompts"
FILES = sorted(file.stem for file in (FOLDER / "en").glob("*.txt"))
NEEDED = {
    "generate": {"prompt": "{text}"},
    "generate_structured": {"prompt": "{text}", "schema": {"a": "string"}},
    "classify": {"labels": ["x", "y"]},
    "translate": {"to": "English"},
}
PROMPTED = {
    name: cls for name, cls in operators().items() if issubclass(cls, PromptedOperator) and name != "generate"
}
ALL = list(asking_operators())


def test_every_prompt_is_there_in_both_languages():
    assert sorted(file.stem for file in (FOLDER / "zh").glob("*.txt")) == FILES


@pytest.mark.parametrize("name", FILES)
def test_both_languages_name_the_same_columns(name: str):
    en, zh = (prompt_template(name, language) for language in LANGUAGES)
    assert sorted(en.columns()) == sorted(zh.columns())
    fixed = "".join(zh.literals()).replace("{", "").strip()
    assert not fixed or language_of(fixed) == "zh"


@pytest.mark.parametrize("name", PROMPTED)
def test_every_operator_ships_the_files_that_it_names(name: str):
    operator = built(name, NEEDED.get(name))
    assert isinstance(operator, PromptedOperator)
    names = [*operator.pieces, *([operator.shipped_name()] if operator.shipped_name() else [])]
    assert set(names) <= set(FILES)
    assert names or name == "generate_structured"


@pytest.mark.parametrize("name", ALL)
def test_columns_are_said_before_any_row(name: str):
    operator = built(name, NEEDED.get(name))
    assert operator.reads()
    assert set(operator.writes()).isdisjoint({"row_id", "reject_reason"})
    assert operator.serving == "default"


@given(st.text(min_size=1).filter(str.strip), st.text())
def test_any_text_of_a_row_arrives_unchanged(text: str, more: str):
    params = {"prompt": "<{text}|{more}>", "system": "{more}!", "gates": {"no_refusal": False}}
    _, calls = done("generate", params, {"text": text, "more": more}, "fine")
    system, last = calls[0].messages
    assert (system["content"], last["content"]) == (f"{more}!", f"<{text}|{more}>")


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("clean_knowledge", {"text": ""}),
        ("rewrite", {"text": ""}),
        ("translate", {"text": ""}),
        ("answer", {"instruction": ""}),
        ("evolve_instruction", {"instruction": ""}),
    ],
)
@given(text=st.text(min_size=1).filter(str.strip))
def test_shipped_prompts_hold_the_text_unchanged(name: str, row: dict, text: str):
    _, calls = done(name, NEEDED.get(name, {}), dict.fromkeys(row, text), "a new and quite different text")
    assert text in user(calls[0])


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("auto", "Water boils.", "en"),
        ("auto", "水在一百度沸腾。", "zh"),
        ("auto", "GPU 显存 is 80 GB and fast, 很快", "en"),
        ("en", "水在一百度沸腾。", "en"),
        ("zh", "Water boils.", "zh"),
    ],
)
def test_the_shipped_prompt_is_in_the_language_of_the_row(language: str, text: str, expected):
    _, calls = done("clean_knowledge", {"language": language}, {"text": text}, "ok")
    assert user(calls[0]) == prompt_text("clean_knowledge", expected).replace("{text}", text)


def test_system_and_examples_come_before_the_row():
    params = {
        "prompt": "Q: {text}",
        "system": "Be brief, {who}. {{json}}",
        "examples": [{"user": "Q: {a}", "assistant": "{b}"}],
    }
    _, calls = done("generate", params, {"text": "t", "who": "Ann"}, "ok")
    assert calls[0].messages == (
        {"role": "system", "content": "Be brief, Ann. {json}"},
        {"role": "user", "content": "Q: {a}"},
        {"role": "assistant", "content": "{b}"},
        {"role": "user", "content": "Q: t"},
    )
    assert sorted(built("generate", params).reads()) == ["text", "who"]


def test_only_given_parameters_are_sent():
    _, (plain,) = done("generate", {"prompt": "{text}"}, {"text": "t"}, "ok")
    _, (full,) = done(
        "generate",
        {"prompt": "{text}", "temperature": 0.5, "max_tokens": 9, "seed": 3},
        {"text": "t"},
        "ok",
    )
    assert plain.parameters == {}
    assert full.parameters == {"temperature": 0.5, "max_tokens": 9, "seed": 3}


def test_a_prompt_file_is_read_from_the_folder_of_the_pipeline(tmp_path: Path):
    (tmp_path / "ask.txt").write_text("\ufeffAsk about {题目}\n", "utf-8")
    operator = build_operator("generate", {"prompt_file": "ask.txt"}, base_dir=tmp_path)
    assert operator.reads() == ["题目"]
    inline = built("generate", {"prompt": "Ask about {题目}"})
    assert operator.fingerprint_of_params() == inline.fingerprint_of_params()


def test_another_prompt_is_another_step():
    prints = [
        built("generate", {"prompt": "{text}"}).fingerprint_of_params(),
        built("generate", {"prompt": "{text}!"}).fingerprint_of_params(),
        built("generate", {"prompt": "{text}", "system": "x"}).fingerprint_of_params(),
    ]
    assert len({str(each) for each in prints}) == 3


@pytest.mark.parametrize(("language", "known"), [("auto", ["en", "zh"]), ("zh", ["zh"])])
def test_the_shipped_prompts_are_part_of_what_a_step_is(language: str, known: list[str]):
    found = built("clean_knowledge", {"language": language}).fingerprint_of_params()["shipped"]
    assert found == {f"clean_knowledge.{each}": prompt_text("clean_knowledge", each) for each in known}  # pyright: ignore


def test_an_own_prompt_stands_in_for_the_shipped_one():
    operator = built("clean_knowledge", {"prompt": "Tidy: {text} ({kind})", "column": "body"})
    assert operator.reads() == ["body", "kind"]
    _, calls = done(
        "clean_knowledge", {"prompt": "Tidy: {text}", "column": "body"}, {"body": "b", "text": "x"}, "ok"
    )
    assert user(calls[0]) == "Tidy: b"
    assert operator.fingerprint_of_params()["shipped"] == {}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "give prompt, prompt_file or messages_column"),
        ({"prompt": "{text"}, "prompt: line 1 has a brace that belongs to no column"),
        ({"prompt": "{text}", "system": "}"}, "system: line 1 has a brace"),
        ({"prompt": " \n"}, "prompt is blank"),
        ({"prompt": "x", "prompt_file": "y"}, "give prompt or prompt_file, not both"),
        ({"prompt_file": "no_such_file.txt"}, "prompt_file 'no_such_file.txt' cannot be read"),
        ({"prompt": "x", "language": "fr"}, "language"),
        ({"prompt": "x", "examples": [{"user": "u"}]}, "assistant"),
    ],
)
def test_a_prompt_that_cannot_be_used_is_refused_at_load(params: dict, message: str):
    with pytest.raises(ConfigError) as error:
        build_operator("generate", params)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (" \n fine \n", "fine"),
        ("<think>well {x}</think>\n\nfine", "fine"),
        ("the tag is left out by the server</think>fine", "fine"),
        ("<think>a</think><think>b</think>fine", "fine"),
        ("HTML has <think> and </think>", "HTML has <think> and </think>"),
    ],
)
def test_white_space_and_thinking_are_no_part_of_an_answer(answer: str, expected: str):
    assert done("generate", {"prompt": "{text}"}, {"text": "t"}, answer)[0] == {"generated": expected}


def test_thinking_can_be_kept():
    params = {"prompt": "{text}", "keep_thinking": True}
    assert done("generate", params, {"text": "t"}, "<think>a</think>b")[0] == {
        "generated": "<think>a</think>b"
    }


@pytest.mark.parametrize("answer", ["<think>on and on", "<think>a</think> \n"])
def test_thinking_without_an_answer_is_empty(answer: str):
    assert error_class("generate", {"prompt": "{text}"}, {"text": "t"}, answer) == "empty"


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("As an AI language model, I cannot.", "gate:no_refusal"),
        (f"{prompt_text('clean_knowledge', 'en').splitlines()[0]} Sure.", "gate:no_prompt_leak"),
        ("", "gate:not_empty"),
    ],
)
def test_the_default_gates_are_on(answer: str, found: str):
    assert error_class("clean_knowledge", {}, {"text": "t"}, answer) == found


@pytest.mark.parametrize("name", ["clean_knowledge", "rewrite", "refine", "translate", "classify", "embed"])
@pytest.mark.parametrize("text", [None, "", " \u3000\n"])
def test_nothing_is_asked_about_a_row_without_text(name: str, text: str | None):
    assert error_class(name, NEEDED.get(name, {}), {"text": text}) == "MissingValue"
