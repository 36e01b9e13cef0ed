"""Words and sentences: spaCy's in English, jieba's in Chinese, and odd runs that must not take long."""

import json
import lzma

import pytest

from dataflow_assets.text import vocabulary, words
from dataflow_assets.text.chinese import chinese_runs, cut_chinese, jieba_cut
from dataflow_assets.text.english import MAX_RUN_CHARS, english_tokenizer
from dataflow_assets.text.ngrams import Ngrams
from dataflow_assets_tests.operators.filters.verdict_documents import FOLDER, documents


@pytest.fixture(scope="module")
def spacy() -> dict[str, list]:
    return json.loads(lzma.decompress((FOLDER / "spacy.json.xz").read_bytes()))


def test_english_words_are_those_of_spacy(spacy: dict[str, list]):
    cut = english_tokenizer().cut
    assert [run for run, expected in spacy["words"] if cut(run) != expected] == []
    assert len(spacy["words"]) > 9000


def test_english_sentences_are_as_many_as_those_of_spacy(spacy: dict[str, list]):
    count = english_tokenizer().count_sentences
    assert [line for line, expected in spacy["sentences"] if count(line) != expected] == []


def test_chinese_words_are_those_of_jieba():
    for document in list(documents())[390:750:9]:
        expected = [word for word in jieba_cut()(document.text) if not word.isspace()]
        assert [word for run in chinese_runs(document.text) for word in cut_chinese(run)] == expected


@pytest.mark.parametrize(
    "run", ["C语言的书", "我们在debian上用apt-get和3.5%的AT&T", "在a了", "他说B超很好", "c++"]
)
def test_mixed_blocks_are_cut_as_jieba_cuts_them(run: str):
    assert cut_chinese(run) == jieba_cut()(run)


@pytest.mark.parametrize("run", ["!", "<", ".", "a.b", "x", "'s", "😀"])
def test_a_very_long_run_is_cut_into_letters_and_marks(run: str):
    text = run * MAX_RUN_CHARS + "."
    assert "".join(english_tokenizer().cut(text)) == text


def test_short_texts_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(words, "_MAX_KEPT_WORDS", 10_000)
    for text in (f"word {number}" + " " * number for number in range(500)):
        words.words_of(text, "en")
        words.words_of(" " * len(text), "en")
    assert len(words._kept._words) <= 100


def test_a_full_vocabulary_is_given_up_and_texts_keep_their_words(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(vocabulary, "_MAX_RUNS", 3)
    texts = [f"word{number} and word{number + 1}, again" for number in range(20)]
    found = [words.words_of(text, "en") for text in texts]
    assert [" ".join(each.strings).replace(" ,", ",") for each in found] == texts


def test_the_bounds_are_never_below_the_exact_counts():
    for document in list(documents())[::40]:
        ngrams = Ngrams(words.words_of(document.text, "en"))
        chars = max(1, len(document.text))
        for n in range(2, 11):
            for share in (0.0, 0.05, 0.1, 0.2):
                if ngrams.top_is_within(n, share, chars):
                    assert (ngrams.top_chars(n) or 0) / chars <= share
                if ngrams.duplicates_are_within(n, share, chars):
                    assert ngrams.duplicate_chars(n) / chars <= share
