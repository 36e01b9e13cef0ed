"""Quality gates on an answer: what must hold before it may become a row's value."""

import hashlib
import inspect
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from itertools import pairwise
from typing import Literal, NoReturn

import regex
from pydantic import Field, field_validator, model_validator

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.llm.shipped import refusal_phrases
from dataflow_assets.operators.operator import Params
from dataflow_assets.operators.registry import import_object
from dataflow_assets.serving.calls import CallFailed
from dataflow_assets.serving.structured import parsed
from dataflow_assets.text.language import LANGUAGES, is_written_in, language_of, width
from dataflow_assets.text.language_identification import check_installed, check_known

GateFunction = Callable[[str, Mapping[str, object]], str | None]
LEAK_WIDTH = 40
_PATTERN_TIMEOUT_S = 1.0
_MAX_SHOWN_CHARS = 60
_TABLE_RULE = re.compile(r"^ *\|?(?: *:?-+:? *\|)+(?: *:?-+:? *)?\|? *$", re.MULTILINE)
_CODE_BLOCK = re.compile(r"^```[^\n]*\n.*?^```", re.MULTILINE | re.DOTALL)
_SPACES = re.compile(r"\s+")


class GateParams(Params):
    """What an answer must be; a miss fails its row as `gate:<name>`, with the answer kept.

    That it is not empty is always asked.
    """

    min_chars: int | None = Field(default=None, ge=1, description="Shortest answer, in characters.")
    max_chars: int | None = Field(default=None, ge=1, description="Longest answer, in characters.")
    language: str | None = Field(
        default=None,
        description="`zh`, `en` (by script), `same` as the input, or another code, judged by py3langid.",
    )
    format: Literal["json", "markdown_table", "code_block"] | None = Field(
        default=None, description="What the answer must hold."
    )
    matches: str | None = Field(default=None, description="A regular expression that must match somewhere.")
    no_refusal: bool = Field(
        default=True, description="No phrase of a refusal (lists in English and Chinese)."
    )
    not_a_copy: bool = Field(default=False, description="Not what was given: see `max_similarity`.")
    max_similarity: float = Field(
        default=0.95,
        gt=0,
        le=1,
        description="Highest share of common character pairs with a text of the input.",
    )
    no_prompt_leak: bool = Field(
        default=True, description="No line of the prompt's fixed text of 40 letters or more (20 in Chinese)."
    )
    function: str | None = Field(
        default=None,
        description="Your own, `package.module:name`: gets answer and row, gives None or the gate's name.",
    )

    @model_validator(mode="after")
    def _bounds_make_sense(self) -> "GateParams":
        if self.min_chars and self.max_chars and self.min_chars > self.max_chars:
            raise ValueError(f"min_chars {self.min_chars} is above max_chars {self.max_chars}")
        return self

    @field_validator("language")
    @classmethod
    def _can_be_judged(cls, language: str | None) -> str | None:
        if language is None or language == "same" or language in LANGUAGES:
            return language
        check_installed(f"the gate on the language {language!r}")
        check_known([language])
        return language

    @field_validator("matches")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        try:
            regex.compile(pattern or "")
        except regex.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        return pattern

    @field_validator("function")
    @classmethod
    def _is_callable(cls, path: str | None) -> str | None:
        if path is None:
            return None
        try:
            function = import_object(path)
        except ConfigError as error:
            raise ValueError(str(error)) from error
        if not callable(function):
            raise ValueError(f"{path!r} is a {type(function).__name__}, expected a function")
        return path


class Gates:
    """The gates of one operator, made once; `prompt_texts` is what an answer must not repeat."""

    def __init__(self, params: GateParams, prompt_texts: Sequence[str] = ()) -> None:
        self.params = params
        self._leaks = _leaks(prompt_texts) if params.no_prompt_leak else []

    def identity(self) -> dict[str, object]:
        """What decides beside the parameters: the phrase lists and the source of the own function."""
        found: dict[str, object] = {}
        if self.params.no_refusal:
            phrases = "\n".join("\n".join(refusal_phrases(language)) for language in LANGUAGES)
            found["refusals"] = hashlib.sha256(phrases.encode()).hexdigest()
        if self._function is not None:
            found["function"] = hashlib.sha256(_source(self._function).encode()).hexdigest()
        return found

    def check(self, answer: str, inputs: Sequence[str] = (), row: Mapping[str, object] | None = None) -> None:
        """Raises CallFailed `gate:<name>` for the first gate that the answer misses.

        `inputs` are the texts that the model was given from the row.
        """
        self._check_length(answer)
        self._check_language(answer, inputs)
        self._check_format(answer)
        self._check_words(answer, inputs)
        if self._function is not None and (name := self._function(answer, row or {})) is not None:
            _miss(name, answer, f"{self.params.function} said so")

    def _check_length(self, answer: str) -> None:
        length, params = len(answer), self.params
        if not answer.strip():
            _miss("not_empty", answer, "the answer is blank, expected text")
        if params.min_chars and length < params.min_chars:
            _miss(
                "min_chars",
                answer,
                f"the answer has {length} characters, expected {params.min_chars} or more",
            )
        if params.max_chars and length > params.max_chars:
            _miss(
                "max_chars",
                answer,
                f"the answer has {length} characters, expected at most {params.max_chars}",
            )

    def _check_language(self, answer: str, inputs: Sequence[str]) -> None:
        language = self.params.language
        if language == "same":
            language = language_of("\n".join(inputs))
        if language is not None and not is_written_in(answer, language):
            _miss("language", answer, f"the answer is not in {language}: {_shown(answer)}")

    def _check_format(self, answer: str) -> None:
        kind, pattern = self.params.format, self.params.matches
        if kind is not None and not _has_format(answer, kind):
            _miss("format", answer, f"expected {kind} in the answer, found {_shown(answer)}")
        if pattern is not None:
            try:
                found = self._pattern.search(answer, timeout=_PATTERN_TIMEOUT_S)
            except TimeoutError:
                _miss("matches", answer, f"{pattern!r} did not end within {_PATTERN_TIMEOUT_S:g} s")
            if found is None:
                _miss("matches", answer, f"{pattern!r} matches nowhere in {_shown(answer)}")

    def _check_words(self, answer: str, inputs: Sequence[str]) -> None:
        if self.params.no_refusal and (phrase := refusal_in(answer)):
            _miss("no_refusal", answer, f"the answer refuses: {phrase!r} in {_shown(answer)}")
        if self.params.not_a_copy:
            for text in inputs:
                if (share := similarity(answer, text)) >= 1 or share > self.params.max_similarity:
                    _miss("not_a_copy", answer, f"the answer is the input again ({share:.0%} the same)")
        if self._leaks:
            plain = _plain(answer)
            for line in self._leaks:
                if line in plain and not any(line in _plain(text) for text in inputs):
                    _miss("no_prompt_leak", answer, f"the answer repeats the prompt: {_shown(line)}")

    @cached_property
    def _pattern(self) -> "regex.Pattern[str]":
        return regex.compile(self.params.matches or "")

    @cached_property
    def _function(self) -> GateFunction | None:
        if self.params.function is None:
            return None
        return import_object(self.params.function)  # pyright: ignore[reportReturnType]


def _miss(name: str, answer: str, found: str) -> NoReturn:
    raise CallFailed(f"gate:{name}", f"gate {name}: {found}", raw=answer)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}…")


def _has_format(answer: str, kind: str) -> bool:
    if kind == "markdown_table":
        return _TABLE_RULE.search(answer) is not None
    if kind == "code_block":
        return _CODE_BLOCK.search(answer) is not None
    try:
        parsed(answer)
    except CallFailed:
        return False
    return True


def refusal_in(answer: str) -> str | None:
    """The phrase by which the answer refuses, of the shipped lists; None if it does not."""
    plain = _plain(answer).replace("’", "'").lstrip("\"'“「*#> ")
    for phrase in _folded_phrases():
        if plain.startswith(phrase[1:]) if phrase[0] == "^" else phrase in plain:
            return phrase.removeprefix("^")
    return None


@cache
def _folded_phrases() -> list[str]:
    return [phrase.casefold() for language in LANGUAGES for phrase in refusal_phrases(language)]


def similarity(first: str, second: str) -> float:
    """The share of common pairs of neighbouring characters (Dice), 0 to 1; white space and case apart."""
    first, second = _plain(first), _plain(second)
    if first == second:
        return 1.0
    one, other = Counter(pairwise(first)), Counter(pairwise(second))
    whole = one.total() + other.total()
    return 2 * (one & other).total() / whole if whole else 0.0


def _plain(text: str) -> str:
    return _SPACES.sub(" ", text).strip().casefold()


def _leaks(texts: Sequence[str]) -> list[str]:
    """The lines that are long enough to be no chance, each once."""
    lines = [_plain(line).lstrip("-*#> ") for text in texts for line in text.split("\n")]
    return list(dict.fromkeys(line for line in lines if width(line) >= LEAK_WIDTH))


def _source(function: object) -> str:
    """The source of a function, or nothing where Python keeps none."""
    try:
        return inspect.getsource(function)  # pyright: ignore[reportArgumentType]
    except (OSError, TypeError):
        return ""
