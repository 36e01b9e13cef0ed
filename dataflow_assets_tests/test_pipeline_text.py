"""A value of a file is the value that was written."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.pipeline import text as text_module
from dataflow_assets.pipeline.text import Node, Unreadable, read_text

STAYS_TEXT = ["yes", "No", "on", "OFF", "y", "0123", "007", "-01", "0x1F", "0o17", "0b1", "1_000", "12:30:45"]
STAYS_TEXT += [
    "2024-01-05",
    "2024-01-05T10:00:00Z",
    ".inf",
    "-.INF",
    ".nan",
    "NaN",
    "1e",
    "e4",
    "1.2.3",
    "tRue",
]
VALUES = {
    "5": 5,
    "-3": -3,
    "+7": 7,
    "0": 0,
    "1.5": 1.5,
    "1e-4": 1e-4,
    "1E4": 1e4,
    ".5": 0.5,
    "2.": 2.0,
    "0.0": 0.0,
    "0e9": 0.0,
    "9007199254740993": 9007199254740993,
    "true": True,
    "False": False,
    "null": None,
    "~": None,
    "": None,
}


def _plain(text: str, language: str = "yaml") -> object:
    root, problems = read_text(text, language)  # pyright: ignore
    assert isinstance(root, Node) and not problems
    return root.plain(lambda text, path, line: text)


@pytest.mark.parametrize("text", STAYS_TEXT)
def test_what_other_readers_guess_at_stays_the_text_that_it_is(text):
    assert _plain(f"a: {text}") == {"a": text}


@pytest.mark.parametrize(("text", "value"), VALUES.items())
def test_an_unquoted_scalar_is_what_it_says(text, value):
    found = _plain(f"a: {text}")["a"]  # pyright: ignore
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("text", ["5", "true", "null", "1e-4", "~", "<<"])
@pytest.mark.parametrize("quoted", ["'{}'", '"{}"', "|-\n  {}", ">-\n  {}"])
def test_a_quoted_or_block_scalar_is_text(text, quoted):
    assert _plain(f"a: {quoted.format(text)}") == {"a": text}


def test_an_alias_is_the_value_again():
    assert _plain("a: &x {b: [1, two]}\nc: *x\n") == {"a": {"b": [1, "two"]}, "c": {"b": [1, "two"]}}


def test_the_line_of_a_value_is_found_by_its_path_and_the_nearest_one_around_it_else():
    root, _ = read_text("a:\n  - b: 1\n    c:\n      d: 2\n", "yaml")
    assert root is not None
    assert [root.line_of(path) for path in [("a", 0, "c", "d"), ("a", 0, "x"), ("a", 7), ("y",)]] == [
        4,
        2,
        1,
        1,
    ]


@pytest.mark.parametrize("indent", [None, 2])
@given(value=st.recursive(st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(), st.lists))
def test_json_comes_back_as_it_was(value, indent):
    assert _plain(json.dumps(value, indent=indent), "json") == value


def test_the_line_of_a_json_value_is_that_of_its_key():
    root, _ = read_text('{\n\n"a": [1,\n2],\n"b"\n: 3}', "json")
    assert root is not None and [root.line_of(path) for path in [("a", 1), ("b",)]] == [4, 5]


@pytest.mark.parametrize("loader", [yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)])
def test_both_parsers_of_pyyaml_give_the_same(loader, monkeypatch):
    monkeypatch.setattr(text_module, "_LOADER", loader)
    assert _plain("a: 0123\nb: [yes, 1e-4, '5', ~]\nc: &x {d: e}\nf: *x") == {
        "a": "0123",
        "b": ["yes", 1e-4, "5", None],
        "c": {"d": "e"},
        "f": {"d": "e"},
    }


@pytest.mark.parametrize("loader", [yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)])
@pytest.mark.parametrize(
    "text", ["a:\n\t- b", "a: !x 1", "a: *y", "a: [", "---\na\n---\nb", "[" * 99, '"\\U00110000"']
)
def test_both_parsers_of_pyyaml_refuse_the_same(loader, text, monkeypatch):
    monkeypatch.setattr(text_module, "_LOADER", loader)
    with pytest.raises(Unreadable):
        read_text(text, "yaml")
