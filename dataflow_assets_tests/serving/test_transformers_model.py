"""A real model in the process: texts, lengths, seeds, stops, embeddings and faults (SmolLM2-135M)."""

import asyncio
import math
from collections.abc import Iterator
from operator import mul
from pathlib import Path
from typing import Any

import pytest

from dataflow_assets.serving.calls import Answer, Call, CallFailed
from dataflow_assets.serving.make import make_serving
from dataflow_assets.serving.spec import TransformersSpec
from dataflow_assets.serving.transformers_model import TransformersServing
from dataflow_assets_tests.serving.asking import call_of
from dataflow_assets_tests.serving.smollm2 import ModelServer

FRANCE = "What is the capital of France?"


@pytest.fixture(scope="module")
def serving(smollm2_folder: Path) -> Iterator[TransformersServing]:
    """The model, loaded once."""
    made = make_serving(TransformersSpec(type="transformers", model="smollm2", path=str(smollm2_folder)))
    assert isinstance(made, TransformersServing)
    yield made
    asyncio.run(made.close())


def sent(serving: TransformersServing, *calls: Call) -> list[Any]:
    """The answers and failures of calls that are sent together."""

    async def together() -> list[Any]:
        return await asyncio.gather(*map(serving.send, calls), return_exceptions=True)

    return asyncio.run(together())


def sampled(**parameters: object) -> Call:
    sampling: dict[str, Any] = {"temperature": 1.0, "max_tokens": 12, **parameters}
    return call_of("Tell me of the sea.", **sampling)


def raw(answer: Any) -> str:
    """The text of an answer that was cut or not."""
    return answer.raw if isinstance(answer, CallFailed) else answer.text


def test_a_question_is_answered_and_the_answer_ends(serving: TransformersServing) -> None:
    (answer,) = sent(serving, call_of(FRANCE, max_tokens=30))
    assert "Paris" in answer.text and answer.finish_reasons == ("stop",)
    assert 30 < answer.tokens_in < 45 and 5 < answer.tokens_out < 15 and answer.model == "smollm2"


def test_calls_of_one_batch_get_their_own_answers_and_lengths(serving: TransformersServing) -> None:
    alone = [raw(sent(serving, call)[0]) for call in _mixed()]
    together = sent(serving, *_mixed())
    assert [raw(answer) for answer in together] == alone
    assert [getattr(answer, "error_class", "stop") for answer in together] == [
        "stop",
        "truncated",
        "truncated",
    ]
    assert [answer.tokens_out for answer in together][1:] == [3, 7]


def _mixed() -> list[Call]:
    return [
        call_of(FRANCE, max_tokens=30),
        call_of("Count to one hundred.", max_tokens=3),
        call_of("Tell me a long story about a fox and a crow.", max_tokens=7),
    ]


def test_equal_seeds_give_equal_samples_whoever_is_in_the_batch(serving: TransformersServing) -> None:
    alone = sent(serving, sampled(seed=1))
    others = sent(serving, sampled(seed=2), sampled(seed=1), call_of(FRANCE, max_tokens=12))
    assert raw(alone[0]) == raw(others[1]) != raw(others[0])


def test_n_samples_come_in_one_answer_and_differ(serving: TransformersServing) -> None:
    call = call_of(
        "My favourite animal is the", kind="completion", n=4, max_tokens=80, stop=[".", ","], **_WARM
    )
    (answer,) = sent(serving, call)
    assert len(answer.texts) == 4 and len(set(answer.texts)) > 1


_WARM = {"temperature": 0.8, "seed": 3}


def test_the_likeliest_token_is_taken_when_top_k_is_1(serving: TransformersServing) -> None:
    greedy, narrow, tight = sent(serving, *(sampled(**how) for how in _NARROW))
    assert raw(greedy) == raw(narrow) == raw(tight)


_NARROW = ({"temperature": 0}, {"top_k": 1, "seed": 5}, {"top_p": 1e-6, "seed": 6})


def test_a_stop_text_ends_the_answer_and_is_no_part_of_it(serving: TransformersServing) -> None:
    (answer,) = sent(serving, call_of("1, 2, 3, 4,", kind="completion", max_tokens=60, stop=["9"]))
    assert answer.text == " 5, 6, 7, 8, " and answer.finish_reasons == ("stop",)
    assert answer.tokens_out < 20


def test_markers_of_the_template_in_a_text_stay_text(serving: TransformersServing) -> None:
    plain, marked = sent(serving, *(call_of(text, max_tokens=1) for text in ("a b", "a <|im_end|> b")))
    assert marked.tokens_in - plain.tokens_in > 3


def test_a_prompt_beyond_the_context_fails_alone(serving: TransformersServing) -> None:
    long, short = sent(serving, call_of("word " * 9000), call_of(FRANCE, max_tokens=30))
    assert long.error_class == "context_length" and "expected at most 8191" in str(long)
    assert "Paris" in short.text


def test_an_unknown_parameter_is_refused_by_name(serving: TransformersServing) -> None:
    (failure,) = sent(serving, call_of(logit_bias=1))
    assert failure.error_class == "bad_request" and "'logit_bias'" in str(failure)


def test_vectors_have_length_1_and_like_texts_are_near(serving: TransformersServing) -> None:
    texts = "The cat sleeps on the sofa.", "A cat is sleeping on the couch.", "def f(x): return x ** 2"
    vectors = [
        answer.vector for answer in sent(serving, *(call_of(text, kind="embedding") for text in texts))
    ]
    assert [len(vector) for vector in vectors] == [576] * 3
    assert all(math.isclose(math.hypot(*vector), 1, rel_tol=1e-4) for vector in vectors)
    one, like, other = vectors
    assert sum(map(mul, one, like)) > sum(map(mul, one, other))


def test_texts_and_vectors_can_be_asked_for_at_the_same_time(serving: TransformersServing) -> None:
    calls = [call_of("a", kind="embedding"), call_of(FRANCE, max_tokens=30), call_of("b", kind="embedding")]
    first, answer, second = sent(serving, *calls)
    assert first.vector and second.vector and "Paris" in answer.text


def test_a_call_that_is_given_up_takes_no_other_with_it(serving: TransformersServing) -> None:
    async def one_given_up() -> Answer:
        given_up = asyncio.ensure_future(serving.send(call_of("Count to ten.", max_tokens=5)))
        kept = asyncio.ensure_future(serving.send(call_of(FRANCE, max_tokens=30)))
        await asyncio.sleep(0)
        given_up.cancel()
        return await kept

    assert "Paris" in asyncio.run(one_given_up()).text


def test_a_model_that_is_not_there_fails_hard(tmp_path: Path) -> None:
    missing = TransformersServing(TransformersSpec(type="transformers", model="m", path=str(tmp_path)))
    (failure,) = sent(missing, call_of())
    assert failure.error_class == "not_found" and failure.hard
    asyncio.run(missing.close())


def test_the_server_of_transformers_answers_the_openai_serving(smollm2_server: ModelServer) -> None:
    from dataflow_assets_tests.serving.asking import send

    call = call_of(FRANCE, max_tokens=30, temperature=0)
    assert "Paris" in send(smollm2_server.base_url, call, model=smollm2_server.model).text
