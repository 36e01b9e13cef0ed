import random
import re
import tempfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.errors import StorageError
from dataflow_assets.operators.deduplication.scratch_texts import ScratchTexts
from dataflow_assets.operators.deduplication.shingles import shingles, units_texts
from dataflow_assets.operators.deduplication.simhash_duplicates import simhashes
from dataflow_assets.operators.deduplication.simplified_text import (
    _simplified_short,
    normalized,
    simplified,
)
from dataflow_assets_tests.operators.test_any_text import ODD_TEXTS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello,  World!", "hello world"),
        ("1,234.5 and 6.7.8, 9.", "0 and 0 0"),
        ("3D v2.0 a1b2", "0d v0 a0b0"),
        ("caf\u00e9 CAFE\u0301 \u00c5ngstr\u00f6m", "cafe cafe angstrom"),
        ("don't “quote”…", "don t quote"),
        ("中文，很好。１２", "中文 很好 0"),
        ("soft\u00adhyphen \u200bzero\u200dwidth", "softhyphen zerowidth"),
        ("a\n\n\tb\u3000c\u2028d\x00e", "a b c d e"),
        ("👍🏽 ok 🇩🇪", "ok"),
        (".,.,", ""),
        ("", ""),
    ],
)
def test_simplified(text: str, expected: str):
    assert simplified([text]) == [expected]


def by_the_character(text: str) -> str:
    """The rule on ASCII, one character after another."""
    zeroed = re.sub(r"[0-9]+(?:[.,][0-9]+)*", "0", text.lower())
    return " ".join("".join(char if char.isalnum() else " " for char in zeroed).split())


@given(st.lists(st.text("aZ09 .,-\n", max_size=30), max_size=6))
def test_texts_do_not_run_into_each_other(texts: list[str]):
    assert simplified(texts) == [by_the_character(text) for text in texts]


@given(st.lists(st.text(max_size=30), max_size=6))
def test_any_text_is_simplified_alone_as_among_others(texts: list[str]):
    assert simplified(texts) == [simple for text in texts for simple in simplified([text])]


def test_long_texts_are_simplified_in_chunks_as_at_once():
    random_ = random.Random(2)
    texts = ["".join(random_.choices("aB 1.,é中", k=random_.randint(0, 30_000))) for _ in range(20)]
    assert simplified(texts) == [simple for text in texts for simple in simplified([text])]


def test_long_runs_are_not_remembered():
    _simplified_short.cache_clear()
    assert simplified(["é" + "中" * 60_000, "été"]) == ["e" + "中" * 60_000, "ete"]
    assert _simplified_short.cache_info().currsize == 1


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
def test_odd_texts_are_simplified(text: str):
    [simple] = simplified([text])
    assert "  " not in simple and "\n" not in simple and simple == simple.strip()


def test_normalized_keeps_case_and_punctuation():
    assert normalized(" Cafe\u0301,\n\n au\u3000lait ") == "Caf\u00e9, au lait"


def test_chinese_gets_spaces_between_its_words():
    assert units_texts(["数据切分的办法", "plain 中 text of English"], "words") == [
        "数据 切分 的 办法",
        "plain 中 text of english",
    ]


units = st.lists(st.lists(st.sampled_from(["a", "b", "中", "é", "xy"]), max_size=8), max_size=5)


@given(units, st.integers(1, 4), st.sampled_from(["words", "characters"]))
def test_equal_runs_have_equal_hashes_and_others_have_not(texts: list[list[str]], n: int, unit: str):
    joined = [(" " if unit == "words" else "").join(text) for text in texts]
    sets = shingles(joined, unit, n)  # pyright: ignore[reportArgumentType]
    known: dict[tuple[str, ...], int] = {}
    for place, text in enumerate(joined):
        parts = text.split(" ") if unit == "words" and text else list(text)
        runs = [tuple(parts[begin : begin + n]) for begin in range(len(parts) - n + 1)]
        hashes = sets.hashes[sets.ends[place] : sets.ends[place + 1]].tolist()
        assert len(runs) == len(hashes)
        assert all(known.setdefault(run, value) == value for run, value in zip(runs, hashes, strict=True))
    assert len(set(known.values())) == len(known)


def test_a_text_of_a_megabyte_has_its_runs():
    sets = shingles(["x " * 500_000 + "y", "x x x"], "words", 3)
    assert np.diff(sets.ends).tolist() == [499_999, 1]
    assert len(np.unique(sets.hashes)) == 2


def test_a_simhash_is_the_majority_of_each_bit():
    random_ = random.Random(4)
    texts = ["".join(random_.choices("abcdef ", k=length)) for length in (0, 3, 5, 80, 150, 4, 99)]
    sets = shingles(texts, "characters", 4)
    found = simhashes(sets).tolist()
    for place, value in enumerate(found):
        hashes = sets.hashes[sets.ends[place] : sets.ends[place + 1]].tolist()
        assert value == sum(
            1 << bit for bit in range(64) if 2 * sum(each >> bit & 1 for each in hashes) > len(hashes)
        )


def test_texts_put_aside_come_back_in_any_order(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dataflow_assets.operators.deduplication.scratch_texts._CACHED_NUMBERS", 40)
    monkeypatch.setattr("dataflow_assets.operators.deduplication.scratch_texts._READ_BYTES", 30)
    random_ = random.Random(5)
    texts = ["é" * random_.randint(0, 20) for _ in range(60)]
    with ScratchTexts(lambda some: [np.frombuffer(text.encode(), np.uint8) for text in some]) as scratch:
        for text in texts:
            scratch.append(text)
        for number in range(60):
            for other in (number, random_.randint(0, number)):
                assert scratch[other].tobytes().decode() == texts[other]


def test_a_full_disk_is_told_as_such(monkeypatch: pytest.MonkeyPatch):
    full = open("/dev/full", "wb")  # noqa: SIM115  closed by the scratch file
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: full)
    with (
        pytest.raises(StorageError, match=r"No space left.*TMPDIR"),
        ScratchTexts(lambda some: []) as scratch,
    ):
        scratch.append("text" * 10_000)
    assert full.closed
