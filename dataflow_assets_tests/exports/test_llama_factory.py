import json
from pathlib import Path
from typing import Any

import pytest

from dataflow_assets.errors import ConfigError, UnwritableValue
from dataflow_assets_tests.exports.conftest import Exported

ALPACA = [{"instruction": f"问 {n}", "input": "" if n else None, "output": f"a {n}"} for n in range(9)]
MESSAGES = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": "a"},
]
SHAREGPT = [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]


def info(folder: Path) -> dict[str, Any]:
    (found,) = json.loads((folder / "dataset_info.json").read_text("ascii")).values()
    return found


def lines(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "p_kept.jsonl").read_text("utf-8").splitlines()]


def test_alpaca_columns_are_known_by_their_names(exported: Exported):
    folder = exported([{**row, "other": 1} for row in ALPACA], "llamafactory")
    assert lines(folder) == ALPACA
    assert info(folder) == {
        "file_name": "p_kept.jsonl",
        "formatting": "alpaca",
        "columns": {"prompt": "instruction", "query": "input", "response": "output"},
    }


@pytest.mark.parametrize(("name", "turns"), [("messages", MESSAGES), ("conversations", SHAREGPT)])
def test_conversations_come_with_the_tags_of_their_turns(exported: Exported, name: str, turns: list):
    folder = exported([{name: turns, "text": "t"}], "llamafactory")
    assert lines(folder) == [{name: turns}]
    assert info(folder)["columns"] == {"messages": name}
    assert {info(folder)["tags"][tag] for tag in ("role_tag", "content_tag")} == turns[0].keys()


def test_columns_of_other_names_are_said(exported: Exported):
    rows = [{"question": "q", "answer": "a", "instruction": "not this"}]
    folder = exported(rows, "llamafactory", named={"prompt": "question", "response": "answer"})
    assert (lines(folder), info(folder)["columns"]) == (
        [{"question": "q", "answer": "a"}],
        {"prompt": "question", "response": "answer"},
    )


def test_tools_are_written_as_text(exported: Exported):
    folder = exported([{"messages": MESSAGES, "tools": [{"name": "f"}], "text": "t"}], "llamafactory")
    assert lines(folder)[0]["tools"] == '[{"name":"f"}]'


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"question": "q", "answer": "a"}, "found neither"),
        ({"messages": MESSAGES, "conversations": SHAREGPT}, "say which"),
        ({"instruction": "q", "output": 3}, "expected texts"),
        ({"instruction": "q", "output": "a", "messages": MESSAGES}, "expected either"),
    ],
)
def test_columns_that_do_not_say_what_is_what_are_a_mistake(exported: Exported, row: dict, said: str):
    with pytest.raises(ConfigError, match=said):
        exported([{**row, "text": "t"}], "llamafactory")


@pytest.mark.parametrize(
    "bad",
    [
        MESSAGES[:2],
        MESSAGES[:1],
        [MESSAGES[2], MESSAGES[1]],
        SHAREGPT,
        [MESSAGES[1], {"role": "assistant", "content": None}],
        [MESSAGES[1], {"role": "tool", "content": "x"}],
        "text",
        None,
    ],
)
def test_a_row_that_would_be_skipped_is_refused_by_its_id(exported: Exported, tmp_path: Path, bad: object):
    with pytest.raises(UnwritableValue, match="row 'in:2'"):
        exported([{"messages": MESSAGES, "text": "t"}, {"messages": bad, "text": "t"}], "llamafactory")
    assert not (tmp_path / "out").exists()


def test_a_row_without_an_answer_is_refused(exported: Exported):
    with pytest.raises(UnwritableValue, match=r"row 'in:2', column 'output': the row has no text"):
        exported([ALPACA[1], {**ALPACA[2], "output": None}], "llamafactory")
