"""Operators that make one text of another: clean, rewrite, translate, evolve, answer, embed."""

import re
from collections import Counter

import pytest
import yaml

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.catalog import described
from dataflow_assets.operators.llm.embed import Embed
from dataflow_assets.operators.llm.evolve import METHODS
from dataflow_assets.operators.llm.shipped import prompt_text
from dataflow_assets.operators.registry import build_operator
from dataflow_assets.serving.spec import OpenAISpec
from dataflow_assets_tests.operators.llm.asking import built, done, error_class, user

ROW = {"text": "Water boils at 100 degrees.", "instruction": "What is heat?"}


def filled(name: str, language="en", **words: str) -> str:
    text = prompt_text(name, language)
    for word, value in words.items():
        text = text.replace(f"{{{word}}}", value)
    return text


def test_clean_knowledge_writes_in_the_place_of_the_text():
    found, (call,) = done("clean_knowledge", {}, ROW, "Clean.")
    assert found == {"text": "Clean."}
    assert call.messages == ({"role": "user", "content": filled("clean_knowledge", text=ROW["text"])},)
    assert built("clean_knowledge", {"output_column": "clean"}).writes() == {"clean": "string"}


@pytest.mark.parametrize("name", ["rewrite", "refine"])
def test_rewrite_and_refine_are_one(name: str):
    found, (call,) = done(name, {"output_column": "new"}, ROW, "New.")
    style = prompt_text("rewrite.style", "en")
    assert found == {"new": "New."}
    assert user(call) == filled("rewrite", style=style, text=ROW["text"])


def test_a_style_is_said_as_it_is():
    _, (call,) = done("rewrite", {"style": "in {three} words"}, {"text": "水开了"}, "新")
    assert user(call) == filled("rewrite", "zh", style="in {three} words", text="水开了")


def test_translate_names_the_language_and_can_check_it():
    params = {"to": "Chinese", "gates": {"language": "zh"}}
    found, (call,) = done("translate", params, ROW, "水在100度沸腾。")
    assert found == {"translation": "水在100度沸腾。"}
    assert user(call) == filled("translate", to="Chinese", text=ROW["text"])
    assert error_class("translate", params, ROW, "Water still.") == "gate:language"


def test_a_method_is_chosen_by_seed_and_row_alone():
    chosen = [evolved(f"r{row}", 1)["evolve_method"] for row in range(100)]
    assert chosen == [evolved(f"r{row}", 1)["evolve_method"] for row in range(100)]
    assert chosen != [evolved(f"r{row}", 2)["evolve_method"] for row in range(100)]
    assert min(Counter(chosen)[method] for method in METHODS) >= 8


def evolved(row_id: str, seed: int) -> dict:
    row = {"row_id": row_id, "instruction": "What is heat?"}
    found, _ = done("evolve_instruction", {"seed": seed}, row, "Why does a stone in the sun get warm?")
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("method", METHODS)
def test_evolve_says_the_method_to_the_model(method: str):
    found, (call,) = done("evolve_instruction", {"methods": [method]}, ROW, "Explain entropy in 20 words.")
    assert found == {"evolved": "Explain entropy in 20 words.", "evolve_method": method}
    said = prompt_text(f"evolve_instruction.{method}", "en")
    assert user(call) == filled("evolve_instruction", method=said, instruction=ROW["instruction"])


def test_an_instruction_that_did_not_change_is_no_evolution():
    assert error_class("evolve_instruction", {}, ROW, "What is heat?") == "gate:not_a_copy"
    assert (
        error_class("evolve_instruction", {"gates": {"min_chars": 2}}, ROW, "What is heat?")
        == "gate:not_a_copy"
    )
    kept, _ = done("evolve_instruction", {"gates": {"not_a_copy": False}}, ROW, "What is heat?")
    assert isinstance(kept, dict) and kept["evolved"] == "What is heat?"


def test_an_instruction_is_asked_as_it_is():
    found, (call,) = done("answer", {}, {"instruction": "Add {a} and ${b}"}, "Sum")
    assert (found, user(call)) == ({"answer": "Sum"}, "Add {a} and ${b}")


@pytest.mark.parametrize(
    ("given", "said"), [("4 5", "Add:\n\n4 5"), (None, "Add:"), (" ", "Add:"), ([4, 5], "Add:\n\n[4,5]")]
)
def test_an_input_is_added_where_there_is_one(given: object, said: str):
    params = {"instruction_column": "q", "input_column": "x"}
    _, (call,) = done("answer", params, {"q": "Add:", "x": given}, "9")
    assert user(call) == said
    assert built("answer", params).reads() == ["q", "x"]


def test_an_answer_can_go_on_a_conversation():
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    _, (call,) = done("answer", {"messages_column": "talk"}, {**ROW, "talk": talk}, "Motion")
    assert [message["content"] for message in call.messages] == ["Hi", "Hello", "What is heat?"]


@pytest.mark.parametrize("instruction", [None, " "])
def test_no_instruction_is_not_sent(instruction: str | None):
    assert error_class("answer", {}, {"instruction": instruction}) == "MissingValue"


def test_a_text_becomes_a_vector():
    found, (call,) = done("embed", {"dimensions": 2, "normalize": True}, ROW, (3.0, 4.0))
    assert found == {"embedding": [0.6, 0.8]}
    assert (call.kind, call.parameters, user(call)) == ("embedding", {"dimensions": 2}, ROW["text"])
    assert built("embed").writes() == {"embedding": "json"}


@pytest.mark.parametrize("vector", [None, (), (1.0, float("nan")), (1.0, 2.0, 3.0), (0.0, 0.0)])
def test_a_vector_that_is_none_fails_the_row(vector: object):
    assert error_class("embed", {"dimensions": 2, "normalize": True}, ROW, vector) == "bad_response"


def test_the_serving_of_the_example_is_told_and_is_one():
    [told] = re.findall(r"`servings: (.+?)`", Embed.__doc__ or "")
    [step] = yaml.safe_load(described(Embed).example)
    assert OpenAISpec.model_validate(yaml.safe_load(told)[step["params"]["serving"]]).model


def test_an_embedding_takes_no_temperature():
    with pytest.raises(ConfigError, match="an embedding takes no temperature"):
        build_operator("embed", {"temperature": 0.5})
