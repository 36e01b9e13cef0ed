"""Partition keys as file names: case 38, and every other key."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.errors import ConfigError
from dataflow_assets.io.names import inside, key_to_name

CASE = Path(__file__).parents[1] / "cases" / "38_partition_key_paths" / "input.keys.json"
KEYS = json.loads(CASE.read_text(encoding="utf-8"))
REFUSED = ["a...b", "tab\tkey", "line\nkey", ""]
MAPPED = [key for key in KEYS if key not in REFUSED]
TRICKY = [
    "a",
    "A",
    "é",
    "e\u0301",
    "ſ",
    "K",
    "ß",
    "İ",
    "ı",
    ".",
    "..",
    "con",
    "NUL",
    "a/b",
    "a%2Fb",
    "=",
    "-",
]
addressable = st.text(min_size=1).filter(
    lambda key: "..." not in key and not re.search("[\x00-\x1f\x7f]", key)
)
keys = (
    addressable
    | st.sampled_from([*MAPPED, *TRICKY])
    | st.text("aAbB=-_./", min_size=1).filter(lambda key: "..." not in key)
)


@pytest.mark.parametrize("key", REFUSED)
def test_a_key_that_dagster_cannot_address_is_refused_with_the_key_in_the_message(key):
    with pytest.raises(ConfigError, match="partition key") as refusal:
        key_to_name(key)
    assert repr(key) in str(refusal.value) or "empty" in str(refusal.value)


def test_the_keys_of_case_38_have_names_that_no_disk_confuses():
    names = {key_to_name(key).casefold() for key in MAPPED}
    assert len(names) == len(MAPPED) == 25


@given(st.lists(keys, min_size=2, max_size=2, unique=True))
def test_distinct_keys_have_distinct_names_on_disks_that_fold_case(pair):
    first, second = map(key_to_name, pair)
    assert first.casefold() != second.casefold()


@given(keys)
def test_a_name_is_short_and_of_characters_that_are_safe_everywhere(key):
    name = key_to_name(key)
    assert re.fullmatch("[a-z0-9_=-]+", name)
    assert len(f"{name}.parquet") <= 255
    assert not name.startswith("-")


@given(st.from_regex(r"[a-z0-9_][a-z0-9_-]{0,99}", fullmatch=True))
def test_a_plain_key_is_its_own_name_unless_it_is_a_device(key):
    assert key_to_name(key) == key or re.match("(con|prn|aux|nul|com|lpt)", key)


@pytest.mark.parametrize("key", ["con", "nul", "com1", "lpt9"])
def test_a_device_name_of_windows_is_never_a_file_name(key):
    assert key_to_name(key).startswith(f"{key}=")


def test_a_path_below_the_root_is_given_back(tmp_path):
    assert inside(tmp_path, tmp_path / "a" / "b") == tmp_path / "a" / "b"


@pytest.mark.parametrize("way", ["..", "../other", "a/../../other", "/nonexistent_case38"])
def test_a_path_out_of_the_root_is_refused(tmp_path, way):
    with pytest.raises(ConfigError, match="outside of the root"):
        inside(tmp_path / "root", tmp_path / "root" / way)


def test_a_link_out_of_the_root_is_refused_by_name(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="link/x leads to"):
        inside(tmp_path / "root", tmp_path / "root" / "link" / "x")
