"""English words by the rules of spaCy's tokenizer, which are in `english_rules.json`, without spaCy.

A run without white space is cut on its own. spaCy looks for its special cases (emoticons,
abbreviations) across white space too, but puts none together: the words are the same but where an
emoticon of one run overlaps another that would go on in the next.
"""

import json
import re
from functools import cache
from pathlib import Path
from unicodedata import category

_RULES = Path(__file__).with_name("english_rules.json")
# The runs that most texts are made of, cut as all rules together would cut them.
_PLAIN = re.compile(r"([A-Za-z]+)([,;:!?]|(?<=[a-z]{2})\.)?")
_USUAL = re.compile(
    r"""([("“\[]?)([A-Za-z]{2,}(?:-[A-Za-z]{2,})*|[0-9]{2,})((?<=[A-Za-z])['’]s)?"""
    r"""([,!?)\]"”]?)((?:(?<=[a-z][a-z])|(?<=[a-z]['’]s)|(?<=[a-z][a-z][)\]"”])|(?<=[0-9]))\.)?([,!?)\]"”]?)"""
)
_HYPHEN = re.compile("(-)")
_LETTERS_OR_MARK = re.compile(r"\w+|.", re.DOTALL)
_SUFFIX_WINDOW = 16
_WHITE = re.compile(r"\s+")
# A longer run is no language (encoded bytes, rows of marks); the rules would take quadratic time.
MAX_RUN_CHARS = 10_000


class EnglishTokenizer:
    """Cuts runs without white space into words and punctuation marks."""

    def __init__(self) -> None:
        rules = json.loads(_RULES.read_text("ascii"))
        self._special: dict[str, list[str]] = rules["special"]
        self._sentence_ends = frozenset(rules["sentence_ends"])
        self._prefix = re.compile(rules["prefix"])
        self._suffix = re.compile(rules["suffix"])
        self._infix = re.compile(rules["infix"])
        self._url = re.compile(rules["url"])
        self._joined = self._cut_special_cases()
        self._longest_joined = max(map(len, self._joined))

    def _cut_special_cases(self) -> dict[tuple[str, ...], list[str]]:
        """The special cases that the other rules cut: their pieces, to be put together again."""
        joined = {}
        for chunk, words in self._special.items():
            if self._prefix.match(chunk) or self._suffix.search(chunk) or self._infix.search(chunk):
                joined[tuple(self._by_affixes(chunk, {}))] = words
        return joined

    def cut(self, run: str) -> list[str]:
        """The words of one run; a run of more than 10,000 characters into letter runs and marks."""
        special = self._special.get(run)
        if special is not None:
            return special
        plain = _PLAIN.fullmatch(run)
        if plain is not None and plain[1] not in self._special:
            return [run] if plain[2] is None else [plain[1], plain[2]]
        usual = _USUAL.fullmatch(run)
        if usual is not None and self._is_usual(usual):
            before, core, *after = usual.groups()
            words = [core] if "-" not in core else _HYPHEN.split(core)
            return [word for word in (before, *words, *after) if word]
        if len(run) > MAX_RUN_CHARS:
            return _LETTERS_OR_MARK.findall(run)
        return self._with_special_cases(self._by_affixes(run, self._special))

    def _is_usual(self, found: re.Match[str]) -> bool:
        """Whether no special case is in the run."""
        _, core, possessive, *_ = found.groups()
        special = self._special
        return not (
            core in special
            or f"{core}{possessive}" in special
            or f"{core}." in special
            or any(part in special for part in core.split("-"))
        )

    def _by_affixes(self, run: str, special: dict[str, list[str]]) -> list[str]:
        """Takes prefixes and suffixes off as long as there are any, then cuts the rest at infixes."""
        before: list[str] = []
        after: list[str] = []
        last_size = 0
        while run and len(run) != last_size and run not in special:
            last_size = len(run)
            found = self._prefix.match(run)
            prefix = found.end() if found else 0
            if prefix and run[prefix:] in special:
                before.append(run[:prefix])
                run = run[prefix:]
                break
            suffix = self._suffix_length(run[prefix:] if prefix else run)
            if suffix and run[:-suffix] in special:
                after.append(run[-suffix:])
                run = run[:-suffix]
                break
            if prefix and suffix and prefix + suffix > len(run):
                suffix = 0
            if prefix:
                before.append(run[:prefix])
            if suffix:
                after.append(run[-suffix:])
            run = run[prefix : len(run) - suffix]
        before += self._inside(run, special) if run else ()
        after.reverse()
        return before + after

    def _suffix_length(self, run: str) -> int:
        """The length of the suffix; only a run of equal marks can be longer than the window."""
        start = max(0, len(run) - _SUFFIX_WINDOW)
        found = self._suffix.search(run, start)
        if found is not None and start and found.start() == start:
            found = self._suffix.search(run)
        return found.end() - found.start() if found else 0

    def _inside(self, run: str, special: dict[str, list[str]]) -> list[str]:
        if run in special:
            return special[run]
        if self._url.match(run):
            return [run]
        words, start = [], 0
        for found in self._infix.finditer(run):
            if found.start() == 0:
                continue
            if found.start() != start:
                words.append(run[start : found.start()])
            if found.end() != found.start():
                words.append(found.group())
            start = found.end()
        if start < len(run):
            words.append(run[start:])
        return words

    def _with_special_cases(self, words: list[str]) -> list[str]:
        """Puts special cases together that were cut: the longest first, then the first."""
        found = [
            (first, last)
            for length in range(min(self._longest_joined, len(words)), 0, -1)
            for first, last in zip(range(len(words)), range(length, len(words) + 1), strict=False)
            if tuple(words[first:last]) in self._joined
        ]
        if not found:
            return words
        starts, seen = {}, set()
        for first, last in found:
            if first not in seen and last - 1 not in seen:
                starts[first] = last
            seen.update(range(first, last))
        result, place = [], 0
        while place < len(words):
            last = starts.get(place, place + 1)
            piece = tuple(words[place:last])
            result += self._joined[piece] if place in starts else piece
            place = last
        return result

    def count_sentences(self, text: str) -> int:
        """The sentences as spaCy's sentencizer cuts them: after . ! ? and the like, and marks behind.

        A text without words is one sentence, as datatrove has it.
        """
        if not text:
            return 1
        sentences, after_end = 1, False
        for run in _runs(text):
            for word in [run] if run.isspace() else self.cut(run):
                if word in self._sentence_ends:
                    after_end = True
                elif after_end and not all(category(mark)[0] == "P" for mark in word):
                    sentences, after_end = sentences + 1, False
        return sentences


def _runs(text: str) -> list[str]:
    """The runs with and without white space, as spaCy has them: one space behind a word is none."""
    runs, place = [], 0
    for white in _WHITE.finditer(text):
        if white.start() > place:
            runs.append(text[place : white.start()])
        swallowed = place < white.start() and text[white.start()] == " "
        if white.end() - white.start() > swallowed:
            runs.append(text[white.start() + swallowed : white.end()])
        place = white.end()
    if place < len(text):
        runs.append(text[place:])
    return runs


@cache
def english_tokenizer() -> EnglishTokenizer:
    """The tokenizer, made when first asked for."""
    return EnglishTokenizer()
