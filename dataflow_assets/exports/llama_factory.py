"""A folder for LLaMA-Factory: the rows as JSON lines, and `dataset_info.json`, which says what is where.

The keys are those of its `DatasetAttr` (llamafactory 0.9.5, `data/parser.py`). It skips a row that it cannot
read with a line in its log, or trains it without an answer; here such a row is refused before anything is
written.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from dataflow_assets.batch import ROW_ID, ColumnType, Schema, rows_of, with_column
from dataflow_assets.errors import ConfigError, UnwritableValue
from dataflow_assets.finished_step import FinishedStep
from dataflow_assets.io.formats import encode

INFO = "dataset_info.json"
_ALPACA = ("prompt", "query", "response", "system", "history", "tools")
_SHAREGPT = ("messages", "system", "tools")
_KEYS = tuple(dict.fromkeys((*_ALPACA, *_SHAREGPT)))
_OWN_NAMES = {"instruction": "prompt", "input": "query", "output": "response", "conversations": "messages"}


class _Style(NamedTuple):
    """How turns are written: the keys of a turn, and the roles of the asking and of the answering side."""

    tags: Mapping[str, str]
    asking: tuple[str, ...]
    answering: tuple[str, ...]


_STYLES = tuple(
    _Style(
        {
            "role_tag": role,
            "content_tag": content,
            "user_tag": user,
            "assistant_tag": assistant,
            "observation_tag": "observation",
            "function_tag": "function_call",
            "system_tag": "system",
        },
        (user, "observation"),
        (assistant, "function_call"),
    )
    for role, content, user, assistant in (
        ("from", "value", "human", "gpt"),
        ("role", "content", "user", "assistant"),
    )
)


def write_llama_factory(
    step: FinishedStep, columns: Schema, named: Mapping[str, str], data_name: str, folder: Path
) -> None:
    """Writes `<data_name>.jsonl` with the columns that are used, and `dataset_info.json`.

    `named` says which column is which of LLaMA-Factory's (`prompt`, `query`, `response`, `history`, or
    `messages`; `system`, `tools`); without it the columns must have the names of Alpaca or ShareGPT.
    Raises ConfigError where they do not say what is what, UnwritableValue for a row that does not fit.
    """
    used = _used(columns, named)
    info: dict[str, object] = {"file_name": f"{data_name}.jsonl", "formatting": "alpaca", "columns": used}
    style = None
    if "messages" in used:
        style = _style_of(step, columns, used["messages"])
        info |= {"formatting": "sharegpt", "tags": dict(style.tags)}
    wanted: Schema = {name: columns[name] for name in columns if name == ROW_ID or name in used.values()}
    with open(folder / f"{data_name}.jsonl", "wb") as file:
        for table in step.kept.tables({ROW_ID: "string", **wanted}):
            _check_rows(table, used, style)
            file.write(encode(_with_text_tools(table.select(list(wanted)), used), "jsonl"))
    text = json.dumps({data_name: info}, indent=2)
    (folder / INFO).write_text(text + "\n", "ascii")  # it opens the file in the encoding of the machine


def _used(columns: Schema, named: Mapping[str, str]) -> dict[str, str]:
    """Which column is which. Raises ConfigError."""
    known = f"the step has {', '.join(columns)}"
    for key, column in named.items():
        if key not in _KEYS:
            raise ConfigError(f"LLaMA-Factory has no column {key!r}; expected one of {', '.join(_KEYS)}")
        if column not in columns:
            raise ConfigError(f"there is no column {column!r} for {key!r}; {known}")
    used = dict(named) or {key: name for name in columns if (key := _OWN_NAMES.get(name, name)) in _KEYS}
    if not named and {"messages", "conversations"} <= columns.keys():
        raise ConfigError(f"both 'messages' and 'conversations' can be the messages; say which; {known}")
    is_alpaca, is_sharegpt = {"prompt", "response"} <= used.keys(), "messages" in used
    if is_alpaca == is_sharegpt:
        found = ", ".join(f"{key} ({name})" for key, name in used.items()) or "neither"
        raise ConfigError(
            f"expected either messages, or a prompt and a response, found {found}; {known}; say which with "
            "`--column messages=NAME`, or `--column prompt=NAME --column response=NAME`"
        )
    fitting = _SHAREGPT if is_sharegpt else _ALPACA
    if wrong := [key for key in used if key not in fitting]:
        form = "messages" if is_sharegpt else "a prompt and a response"
        raise ConfigError(f"{wrong[0]!r} (column {used[wrong[0]]!r}) does not go with {form}; leave it out")
    texts = {key: name for key, name in used.items() if key in ("prompt", "query", "response", "system")}
    for key, name in texts.items():
        if columns[name] != "string":
            raise ConfigError(f"column {name!r} for {key!r} is {columns[name]}; expected texts")
    lists = {key: name for key, name in used.items() if key in ("messages", "history")}
    for key, name in lists.items():
        if columns[name] != "json":
            raise ConfigError(f"column {name!r} for {key!r} is {columns[name]}; expected lists of turns")
    return used


def _style_of(step: FinishedStep, columns: Schema, name: str) -> _Style:
    """How the first conversation that has turns writes them; all others must do the same."""
    wanted: dict[str, ColumnType] = {ROW_ID: "string", name: columns[name]}
    for table in step.kept.tables(wanted):
        for row in rows_of(table):
            turns = row[name]
            if isinstance(turns, list) and turns and isinstance(turns[0], dict):
                for style in _STYLES:
                    if {style.tags["role_tag"], style.tags["content_tag"]} <= turns[0].keys():
                        return style
            raise UnwritableValue(
                f"row {row[ROW_ID]!r}, column {name!r}: expected a list of turns with `from` and `value`, or "
                f"`role` and `content`, found {str(turns)[:80]!r}"
            )
    return _STYLES[0]


def _check_rows(table: pa.Table, used: Mapping[str, str], style: _Style | None) -> None:
    for row in rows_of(table):
        for key, name in used.items():
            for problem in _problems(key, row[name], style):
                raise UnwritableValue(
                    f"row {row[ROW_ID]!r}, column {name!r}: {problem}; filter such rows before, "
                    "or convert them with `convert_chat`"
                )


def _problems(key: str, value: object, style: _Style | None) -> Iterator[str]:
    if key in ("prompt", "response") and value is None:
        yield "the row has no text"
    if key == "history" and value is not None and not _is_history(value):
        yield f"expected a list of pairs of texts, found {str(value)[:80]!r}"
    if key == "messages" and style is not None:
        yield from _problems_of_turns(value, style)


def _is_history(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
        for pair in value
    )


def _problems_of_turns(value: object, style: _Style) -> Iterator[str]:
    role_key, text_key = style.tags["role_tag"], style.tags["content_tag"]
    if not isinstance(value, list) or not all(isinstance(turn, dict) for turn in value):
        yield f"expected a list of turns, found {str(value)[:80]!r}"
        return
    turns = value[1:] if value and value[0].get(role_key) == "system" else value
    for number, turn in enumerate(value, 1):
        if not isinstance(turn.get(text_key), str):
            yield f"turn {number} has no text under {text_key!r}"
    for number, turn in enumerate(turns):
        expected = style.answering if number % 2 else style.asking
        if turn.get(role_key) not in expected:
            place = number + 1 + len(value) - len(turns)
            yield f"turn {place} is of {turn.get(role_key)!r}, expected {' or '.join(expected)}"
    if not turns or len(turns) % 2:
        yield f"{len(turns)} turns; expected questions with their answers"


def _with_text_tools(table: pa.Table, used: Mapping[str, str]) -> pa.Table:
    """The tools as the JSON text that LLaMA-Factory reads."""
    name = used.get("tools")
    return table if name is None else with_column(table, name, "string", table[name])
