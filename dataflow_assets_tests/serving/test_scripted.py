"""The scripted serving follows its rules, answers equal calls alike, and fits any schema."""

import asyncio
import json
import math
from operator import mul
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_assets.errors import ConfigError
from dataflow_assets.serving.calls import Answer, Call, CallFailed
from dataflow_assets.serving.make import make_serving
from dataflow_assets.serving.scripted import ScriptedServing, vector_of
from dataflow_assets.serving.scripted_answers import answer_for, sentences, subject_of
from dataflow_assets.serving.scripted_json import value_for
from dataflow_assets.serving.spec import ScriptedSpec
from dataflow_assets_tests.serving.asking import call_of
from dataflow_assets_tests.serving.virtual_time import now, run_at_once

TEXT = "Water boils at 100 degrees. High up it boils sooner! That is so because the pressure falls."
PROMPT = f"Answer by the text.\n\nText:\n{TEXT}\n\nAnswer:"
CHINESE = "请根据下面的文本写一个问题。\n\n文本：\n水在一百度沸腾。高原上沸点更低！因为气压低……"


def serving(folder: Path, rules: str) -> ScriptedServing:
    """A serving with these rules."""
    (folder / "script.yaml").write_text(f"rules:\n{rules}")
    return ScriptedServing(ScriptedSpec(type="scripted", script=str(folder / "script.yaml")))


def sent(serving: ScriptedServing, call: Call) -> Answer:
    return asyncio.run(serving.send(call))


def failed(serving: ScriptedServing, call: Call) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        sent(serving, call)
    return caught.value


def default() -> ScriptedServing:
    return ScriptedServing(ScriptedSpec(type="scripted"))


def test_the_first_rule_that_matches_answers(tmp_path: Path) -> None:
    rules = (
        "  - {match: {contains: sea}, text: blue}\n"
        "  - {match: {matches: s.a|sky}, text: grey}\n"
        "  - {text: none}\n"
    )
    answers = [sent(serving(tmp_path, rules), call_of(content)).text for content in ("sea", "sky", "sun")]
    assert answers == ["blue", "grey", "none"]


def test_rules_look_at_model_kind_and_schema(tmp_path: Path) -> None:
    rules = (
        '  - {match: {model: "gpt-*"}, text: model}\n'
        "  - {match: {schema: true}, text: schema}\n"
        "  - {match: {kind: completion}, text: kind}\n"
        "  - {match: {model: script*, schema: false}, text: other}\n"
    )
    calls = [Call((), schema={}), call_of(kind="completion"), call_of()]
    assert [sent(serving(tmp_path, rules), call).text for call in calls] == ["schema", "kind", "other"]


def test_a_text_may_use_the_call_and_groups_and_keeps_other_braces(tmp_path: Path) -> None:
    text = """'{"a": "{pet} {1} {2} {last_user} {x}"}'"""
    rules = f"  - match: {{matches: my (?P<pet>cat|dog) (.*)}}\n    text: {text}\n"
    answer = sent(serving(tmp_path, rules), call_of("my dog {1} {{pet}}")).text
    assert answer == '{"a": "dog dog {1} {{pet}} my dog {1} {{pet}} {x}"}'


def test_a_delay_is_waited_for(tmp_path: Path) -> None:
    async def waited_s() -> float:
        await serving(tmp_path, "  - {text: late, delay_ms: 2500}\n").send(call_of())
        return now()

    assert run_at_once(waited_s()) == pytest.approx(2.5)


def test_an_error_comes_so_many_times_for_each_call(tmp_path: Path) -> None:
    rules = "  - {text: ok, error: {class: rate_limited, message: slow, retry_after_s: 2, times: 2}}\n"
    scripted = serving(tmp_path, rules)
    for call in (call_of("a"), call_of("b"), call_of("a")):
        failure = failed(scripted, call)
        assert (failure.error_class, str(failure), failure.retry_after_s) == ("rate_limited", "slow", 2)
    assert sent(scripted, call_of("a")).text == "ok"
    assert failed(scripted, call_of("b")).retryable


def test_an_error_without_times_comes_always(tmp_path: Path) -> None:
    scripted = serving(tmp_path, "  - {error: {class: auth}}\n")
    assert {failed(scripted, call_of()).error_class for _ in range(5)} == {"auth"}


@pytest.mark.parametrize(("reason", "told"), [("length", "truncated"), ("content_filter", "content_filter")])
def test_a_bad_finish_reason_fails_the_call_and_keeps_the_text(
    tmp_path: Path, reason: str, told: str
) -> None:
    rules = f"  - {{text: half, finish_reason: {reason}, tokens: {{input: 3, output: 4}}}}\n"
    failure = failed(serving(tmp_path, rules), call_of())
    assert (failure.error_class, failure.raw) == (told, "half")
    assert (failure.tokens_in, failure.tokens_out) == (3, 4)


def test_a_blank_answer_is_empty(tmp_path: Path) -> None:
    assert failed(serving(tmp_path, '  - {text: " "}\n'), call_of()).error_class == "empty"


def test_an_answer_beyond_max_tokens_is_cut_there(tmp_path: Path) -> None:
    failure = failed(serving(tmp_path, "  - {text: 0123456789abcdef}\n"), call_of(max_tokens=3))
    assert (failure.error_class, failure.raw, failure.tokens_out) == ("truncated", "0123456789ab", 3)


def test_a_call_that_no_rule_matches_is_refused(tmp_path: Path) -> None:
    failure = failed(serving(tmp_path, "  - {match: {contains: sea}, text: blue}\n"), call_of("sky"))
    assert failure.error_class == "bad_request" and "script.yaml" in str(failure)


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ("  - {txt: hi}\n", r"script\.yaml:2: there is no field 'rules\.0\.txt'"),
        ("  - {error: {class: rate_limitd}}\n", r"script\.yaml:2: rules\.0\.error\.class"),
        ("  - {match: {matches: '('}}\n", r"script\.yaml:2: .*is no regular expression"),
        ("  - {text: a, text: b}\n", r"script\.yaml:2: "),
    ],
)
def test_a_mistake_in_a_script_is_told_with_its_line(tmp_path: Path, rules: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        serving(tmp_path, rules)


def test_equal_calls_get_equal_answers_in_whatever_order() -> None:
    calls = [call_of(f"{PROMPT} {number}") for number in range(5)]
    one, other = default(), default()
    answers = [sent(one, call) for call in calls]
    assert [sent(other, call) for call in reversed(calls)] == answers[::-1]


def test_two_of_three_samples_agree() -> None:
    apart = [sent(default(), Call(call_of(PROMPT).messages, sample=sample)).text for sample in range(3)]
    together = sent(default(), call_of(PROMPT, n=3))
    assert apart[0] == apart[1] != apart[2]
    assert list(together.texts) == apart and together.finish_reasons == ("stop",) * 3


def test_without_a_script_the_answer_is_made_of_sentences_of_the_text() -> None:
    longer = PROMPT.replace(TEXT, f"{TEXT} Few know.")
    assert sent(default(), call_of(longer)).text == TEXT
    assert sent(default(), call_of(f"{CHINESE}真的。")).text == "水在一百度沸腾。高原上沸点更低！因为气压低……"


def test_an_answer_that_would_be_a_copy_of_the_text_says_that_it_is_short() -> None:
    assert sent(default(), call_of(PROMPT)).text == f"In short: {TEXT}"
    assert sent(default(), call_of("解释潮汐。")).text == "简而言之：解释潮汐。"


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("Clean the text below so.\n\nText:\na\n\nb", "a\n\nb"),
        ("请清理下面的文本。\n\n文本：\n一\n\n二", "一\n\n二"),
        (
            "Make a new instruction out of the given one. X\n\nGiven instruction:\nSing.",
            "Sing. Give an example, ",
        ),
        ("请把给定的指令改造成一条新指令。X\n\n给定的指令：\n唱歌。", "唱歌。请举一个例子"),
        (
            "Answer it.\nAnswer: <final answer>\n\nQuestion:\nOne? Two?",
            "In short: One? Two?\nAnswer: In short: One?",
        ),
        ("格式：\n答案：<最终答案>\n\n问题：\n一？二？", "简而言之：一？二？\n答案：简而言之：一？"),
    ],
)
def test_shipped_prompts_that_want_another_form_get_it(prompt: str, answer: str) -> None:
    assert sent(default(), call_of(prompt)).text.startswith(answer)


@pytest.mark.parametrize("content", ["", " \n\n ", "?!", "{", "\n\nText:\n\n", "a" * 10_000, "…", "。\n。"])
def test_any_message_is_answered(content: str) -> None:
    assert answer_for(call_of(content)).strip()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ('He said "No." Then 3.5 more.', ['He said "No."', "Then 3.5 more."]),
        ("Wait... what?! Yes", ["Wait...", "what?!", "Yes"]),
        ("一。二！？三……“四。”五；六", ["一。", "二！？", "三……", "“四。”", "五；", "六"]),
        ("first line\nsecond line", ["first line", "second line"]),
        ("--- \n ...", []),
    ],
)
def test_sentences(text: str, found: list[str]) -> None:
    assert sentences(text) == found


@given(st.text())
def test_sentences_lose_no_letter(text: str) -> None:
    letters = [character for character in text if character.isalnum()]
    assert [character for character in "".join(sentences(text)) if character.isalnum()] == letters


def test_the_subject_is_the_text_and_not_what_to_do_with_it() -> None:
    assert subject_of(PROMPT) == TEXT
    assert subject_of(f"Do it.\n\nText:\n{TEXT}\n\nNeeded:\n- salt\n\nJSON:") == f"{TEXT}\n\nNeeded:\n- salt"
    assert subject_of(f"Do it.\n\n{TEXT}\n\nBe short.") == TEXT
    assert subject_of("Explain the tides.") == "Explain the tides."


QA = {
    "type": "object",
    "properties": {
        "pairs": {
            "type": "array",
            "minItems": 3,
            "items": {"$ref": "#/$defs/Pair"},
        }
    },
    "required": ["pairs"],
    "$defs": {
        "Pair": {
            "type": "object",
            "properties": {
                "question": {"type": "string"},
                "answer": {"type": "string"},
                "evidence": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            },
            "required": ["question", "answer", "evidence"],
        }
    },
}


def test_question_answer_and_evidence_belong_together_and_pairs_differ() -> None:
    pairs = json.loads(sent(default(), Call(call_of(PROMPT).messages, schema=QA)).text)["pairs"]
    assert [pair["answer"] for pair in pairs] == sentences(TEXT)
    assert all(pair["evidence"][0] == pair["answer"] for pair in pairs)
    assert pairs[0]["question"] == 'What does the text say about "Water boils at 100 degrees"?'


def test_a_question_about_chinese_is_chinese() -> None:
    pairs = json.loads(sent(default(), Call(call_of(CHINESE).messages, schema=QA)).text)["pairs"]
    assert pairs[0]["question"] == "关于“水在一百度沸腾”，文中说了什么？"


def _numbers(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    bounds = st.tuples(st.integers(-20, 20), st.integers(1, 20))
    whole = bounds.map(lambda pair: {"minimum": pair[0], "maximum": sum(pair)})
    apart = bounds.map(lambda pair: {"exclusiveMinimum": pair[0], "exclusiveMaximum": sum(pair) + 1})
    single = st.sampled_from(["minimum", "maximum"]).flatmap(
        lambda name: st.integers(-9, 9).map(lambda value: {name: value})
    )
    return st.one_of(st.just({}), whole, apart, single).map(lambda bounds: {"type": kind, **bounds})


_STRINGS = st.tuples(st.integers(0, 300), st.integers(0, 300)).map(
    lambda pair: {"type": "string", "minLength": min(pair), "maxLength": max(pair)}
)
_LEAVES = st.one_of(
    _STRINGS,
    st.just({"type": "string"}),
    st.sampled_from(["integer", "number"]).flatmap(_numbers),
    st.just({"type": "boolean"}),
    st.just({"type": ["string", "null"]}),
    st.just({"const": 5}),
    st.lists(st.integers() | st.text(), min_size=1, max_size=3).map(lambda options: {"enum": options}),
)


def _with_one_more(name: str, schema: object) -> dict[str, Any]:
    return {"type": "object", "properties": {name: schema}, "required": [name]}


def _larger(smaller: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    arrays = st.tuples(smaller, st.integers(0, 4)).map(
        lambda pair: {"type": "array", "items": pair[0], "minItems": pair[1], "maxItems": pair[1] + 1}
    )
    names = st.sampled_from(["question", "answer", "score", "label", "a", "b"])
    objects = st.dictionaries(names, smaller, max_size=4).map(
        lambda properties: {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
    )
    choices = st.tuples(smaller, smaller).map(lambda pair: {"anyOf": list(pair)})
    parts = st.tuples(objects, smaller).map(
        lambda pair: {"allOf": [{**pair[0], "additionalProperties": True}, _with_one_more("more", pair[1])]}
    )
    return arrays | objects | choices | parts


@settings(deadline=None)
@given(
    st.recursive(_LEAVES, _larger, max_leaves=8),
    st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=4),
)
def test_a_value_fits_any_schema(schema: dict[str, Any], found: list[str]) -> None:
    value = value_for(schema, found)
    assert value == value_for(schema, found)
    jsonschema.Draft202012Validator(schema).validate(value)


def test_a_schema_that_contains_itself_comes_to_an_end() -> None:
    tree = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    tree["properties"]["children"] = {"type": "array", "items": {"$ref": "#"}}
    jsonschema.validate(value_for(tree, ["a"]), tree)


@pytest.mark.parametrize("text", ["", "a", "water", "水", TEXT])
def test_a_vector_has_length_1_and_is_the_same_again(text: str) -> None:
    answer = sent(default(), call_of(text, kind="embedding"))
    assert answer.vector is not None and len(answer.vector) == 64 and answer.texts == ()
    assert math.hypot(*answer.vector) == pytest.approx(1)
    assert sent(default(), call_of(text, kind="embedding")) == answer


def test_like_texts_have_like_vectors() -> None:
    texts = TEXT, TEXT.replace("Water", "Milk"), "Cats sleep all day."
    one, like, other = (vector_of(text, 64) for text in texts)
    assert sum(map(mul, one, like)) > 0.7 > sum(map(mul, one, other))


def test_a_vector_has_the_wanted_dimensions() -> None:
    assert len(sent(default(), call_of("a", kind="embedding", dimensions=10)).vector or ()) == 10


def test_the_spec_makes_this_serving() -> None:
    made = make_serving(ScriptedSpec(type="scripted"))
    assert isinstance(made, ScriptedServing) and made.model == "scripted" and made.supports_n
    asyncio.run(made.close())
