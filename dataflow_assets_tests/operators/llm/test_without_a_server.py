"""Every operator, with its shipped prompts, gets usable answers from the scripted serving."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest

from dataflow_assets.serving.calls import Answer, Call
from dataflow_assets.serving.scripted import ScriptedServing
from dataflow_assets.serving.spec import ScriptedSpec
from dataflow_assets_tests.operators.llm.asking import asking_operators, built

Checked = TypeVar("Checked")
ENGLISH = "The Moon orbits the Earth at 384,400 km. Its gravity causes the tides. It has no air."
CHINESE = "月球在距地球384400公里处运行。它的引力引起潮汐。月球上没有空气。"
STEPS: list[tuple[str, dict]] = [
    ("generate_structured", {"prompt": "Facts:\n\n{text}", "schema": {"fact": "string", "tags": ["string"]}}),
    ("generate_qa", {"hops": "multi"}),
    ("generate", {"prompt": "Sum up:\n\n{text}", "n": 3}),
    ("filter_with_llm", {"criterion": "It is about the Moon."}),
    ("conversation", {"opening": "simulated"}),
    ("classify", {"labels": ["moon", "sun"]}),
    ("translate", {"to": "French"}),
]
NEEDED = {name for name, _ in STEPS if name in ("generate", "generate_structured", "classify", "translate")}
STEPS += [(name, {}) for name in asking_operators() if name not in NEEDED]


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
@pytest.mark.parametrize(("name", "params"), STEPS, ids=[name for name, _ in STEPS])
def test_a_row_gets_its_columns(name: str, params: dict, text: str):
    serving = ScriptedServing(ScriptedSpec(type="scripted"))
    question = "Why are there tides?" if text == ENGLISH else "为什么会有潮汐？"

    async def ask(call: Call, check: Callable[[Answer], Checked]) -> Checked:
        return check(await serving.send(call))

    row = {
        "row_id": "r0",
        "text": text,
        "instruction": question,
        "answer": text,
        "answer_a": text,
        "answer_b": "No.",
    }
    operator = built(name, params)
    found = asyncio.run(operator.do(row, ask))
    for values in found if isinstance(found, list) else [found]:
        assert isinstance(values, dict)
        assert set(values) == set(operator.writes())
