"""A fake serving that answers from a file of rules: answers, delays, errors. Needs no server, no key."""

import asyncio
import math
import re
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import xxhash
from pydantic import BaseModel, ConfigDict, Field, field_validator

from dataflow_assets.serving.calls import Answer, Call, CallFailed, ErrorClass, Kind
from dataflow_assets.serving.finish import usable
from dataflow_assets.serving.scripted_answers import answer_for, last_user, sentences, subject_of
from dataflow_assets.serving.spec import ScriptedSpec
from dataflow_assets.serving.yaml_file import read_yaml

DEFAULT_SCRIPT = Path(__file__).parent / "scripts" / "default.yaml"
_BYTES_A_TOKEN = 4
_DIMENSIONS = 64
_GRAM_CHARS = 3
_FIELD = re.compile(r"\{([A-Za-z_]\w*|\d+)\}")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Match(_Part):
    """Which calls a rule answers: those that fit all that is given here.

    `contains` and `matches` (a regular expression) are looked for in all messages, joined by line
    breaks; `model` is a pattern such as `gpt-4*`.
    """

    contains: str | None = None
    matches: str | None = None
    model: str | None = None
    kind: Kind | None = None
    schema_wanted: bool | None = Field(default=None, alias="schema")

    @field_validator("matches")
    @classmethod
    def _is_expression(cls, matches: str | None) -> str | None:
        try:
            re.compile(matches or "")
        except re.error as error:
            raise ValueError(f"is no regular expression: {error}") from None
        return matches


class Fault(_Part):
    """How a call fails; the first `times` sendings of each call only, or always."""

    error_class: ErrorClass = Field(alias="class")
    message: str = "as the script says"
    retry_after_s: float | None = Field(default=None, ge=0)
    times: int | None = Field(default=None, ge=1)


class Tokens(_Part):
    """What is counted for a call, instead of a quarter of its bytes."""

    input: int = Field(default=0, ge=0)
    output: int = Field(default=0, ge=0)


class Rule(_Part):
    """What is answered to calls that match; without `text` it is made of the call (`answer_for`).

    In `text`, `{content}` is all that was asked, `{last_user}` the last message of the user, `{subject}`
    what that is about, `{answer}` what would be answered without `text`, `{first}` its first sentence,
    and `{1}` or `{name}` a group of `matches`; other braces stay.
    """

    match: Match = Match()
    text: str | None = None
    delay_ms: float = Field(default=0.0, ge=0)
    error: Fault | None = None
    finish_reason: Literal["stop", "length", "content_filter"] = "stop"
    tokens: Tokens | None = None


class Script(_Part):
    """Rules in the order in which they are tried."""

    rules: list[Rule]


class ScriptedServing:
    """Answers from a script. Equal calls get equal answers, whatever came between them.

    An answer longer than `max_tokens` is cut there, as a server would, and fails as `truncated`.
    """

    supports_n = True

    def __init__(self, spec: ScriptedSpec) -> None:
        self.model = spec.model
        self.script = Path(spec.script) if spec.script else DEFAULT_SCRIPT
        self._rules = read_yaml(self.script, Script).rules
        self._sent: Counter[str] = Counter()

    async def send(self, call: Call) -> Answer:
        """What the first rule that matches says. Raises CallFailed where it says so, or none matches."""
        rule, found = self._rule(call)
        if rule.delay_ms:
            await asyncio.sleep(rule.delay_ms / 1000)
        if rule.error is not None:
            self._fail(rule.error, call)
        if call.kind == "embedding":
            return self._embedded(call, rule)
        texts = tuple(self._text(rule, call, found, choice) for choice in range(call.n))
        return usable(self._answer(texts, call, rule))

    async def close(self) -> None:
        """Does nothing: nothing is held."""

    def _rule(self, call: Call) -> tuple[Rule, "re.Match[str] | None"]:
        """The first rule that matches, and where its expression did."""
        content = content_of(call)
        for rule in self._rules:
            wanted = rule.match
            found = re.search(wanted.matches, content) if wanted.matches else None
            if (found or not wanted.matches) and self._fits(wanted, call, content):
                return rule, found
        raise CallFailed(
            "bad_request", f"no rule of {self.script} matches the call; add one with `match: {{}}` at the end"
        )

    def _fits(self, wanted: Match, call: Call, content: str) -> bool:
        return (
            (wanted.contains is None or wanted.contains in content)
            and (wanted.model is None or fnmatchcase(self.model, wanted.model))
            and wanted.kind in (None, call.kind)
            and wanted.schema_wanted in (None, call.schema is not None)
        )

    def _fail(self, fault: Fault, call: Call) -> None:
        """Raises the failure, if it is still this call's turn to fail."""
        if fault.times is not None:
            key = call.key(self.model)
            self._sent[key] += 1
            if self._sent[key] > fault.times:
                return
        raise CallFailed(fault.error_class, fault.message, retry_after_s=fault.retry_after_s)

    def _text(self, rule: Rule, call: Call, found: "re.Match[str] | None", choice: int) -> str:
        if rule.text is None:
            return answer_for(call, choice)
        answer, asked = answer_for(call, choice), last_user(call)
        values = {"content": content_of(call), "last_user": asked, "subject": subject_of(asked)}
        values |= {"answer": answer, "first": next(iter(sentences(answer)), answer)}
        if found:
            groups = {str(place + 1): text for place, text in enumerate(found.groups(""))}
            values = {**groups, **found.groupdict(""), **values}
        return _FIELD.sub(lambda field: values.get(field[1], field[0]), rule.text)

    def _answer(self, texts: tuple[str, ...], call: Call, rule: Rule) -> Answer:
        """The texts, cut to the longest length that the call allows, with their tokens."""
        limit = (call.max_tokens_out or 0) // call.n
        cut = tuple(_first_tokens(text, limit) for text in texts) if limit and not rule.tokens else texts
        reasons = tuple(
            rule.finish_reason if short == text else "length" for short, text in zip(cut, texts, strict=True)
        )
        tokens = rule.tokens or Tokens(input=_tokens(content_of(call)), output=sum(map(_tokens, cut)))
        return Answer(cut, tokens.input, tokens.output, self.model, reasons)

    def _embedded(self, call: Call, rule: Rule) -> Answer:
        tokens = rule.tokens or Tokens(input=_tokens(content_of(call)))
        dimensions = call.parameters.get("dimensions")
        vector = vector_of(content_of(call), dimensions if isinstance(dimensions, int) else _DIMENSIONS)
        return Answer(tokens_in=tokens.input, model=self.model, vector=vector)


def content_of(call: Call) -> str:
    """All messages, joined by line breaks."""
    return "\n".join(message["content"] for message in call.messages)


def vector_of(text: str, dimensions: int) -> tuple[float, ...]:
    """A unit vector; texts that share more sequences of three characters are nearer to each other."""
    values = [0.0] * dimensions
    padded = f" {text.lower()} "
    for start in range(max(1, len(padded) - _GRAM_CHARS + 1)):
        digest = xxhash.xxh3_64_intdigest(padded[start : start + _GRAM_CHARS].encode())
        values[(digest >> 1) % dimensions] += 1.0 if digest & 1 else -1.0
    length = math.sqrt(sum(value * value for value in values))
    return tuple(value / length for value in values) if length else (1.0, *values[1:])


def _tokens(text: str) -> int:
    """About as many as a model would count."""
    return -(-len(text.encode()) // _BYTES_A_TOKEN)


def _first_tokens(text: str, tokens: int) -> str:
    """The text, cut after so many tokens."""
    return text.encode()[: tokens * _BYTES_A_TOKEN].decode(errors="ignore")
