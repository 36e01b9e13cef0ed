"""The rules of a step as a pipeline declares them under `expect`: what is expected, and how grave it is."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Literal

import xxhash
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from dataflow_assets.pipeline.rule_grammar import Count, Drift, Rule, parse

_WORDS = {"<=": "_at_most_", ">=": "_at_least_", "<": "_below_", ">": "_above_", "=": "_is_"}
_SIGNS = re.compile("<=|>=|<|>|=")
_NO_NAME = re.compile(r"[^A-Za-z0-9_]+")
_PLAIN = re.compile(r'[A-Za-z0-9_ .(),<>="]*')
_MAX_NAME_CHARS = 80
_parsed = lru_cache(maxsize=4096)(parse)


class ExpectSpec(BaseModel):
    """A rule for the data of a step, over all its batches; a text alone is the rule of a warning."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        json_schema_extra=lambda schema: schema.update(_with_text(schema)),
    )

    that: str = Field(min_length=1, description="What is expected, such as `tokens.p95 <= 30`.")
    severity: Literal["error", "warn"] = Field(
        default="warn", description="error: a broken rule stops the step and what is downstream."
    )
    name: str | None = Field(
        default=None, min_length=1, max_length=100, description="What messages call it. Default: the rule."
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: object) -> object:
        return {"that": given} if isinstance(given, str) else given

    @field_validator("that")
    @classmethod
    def _is_a_rule(cls, that: str) -> str:
        _parsed(that)
        return that

    @property
    def rule(self) -> Rule:
        """What is expected."""
        return _parsed(self.that)

    @property
    def blocking(self) -> bool:
        """Whether a broken rule stops what is downstream."""
        return self.severity == "error"

    @property
    def check_name(self) -> str:
        """What it is called in Dagster and in the status: the same for other limits."""
        rule = self.rule
        side = {"<=": "max", "<": "max", ">=": "min", ">": "min", "=": "is"}[rule.op]
        return _as_name(self.name if self.name is not None else f"{rule.value} {side}")

    @property
    def needs_profile(self) -> bool:
        """Whether more than the commit records says how it stands."""
        return not isinstance(self.rule.value, Count)

    @property
    def uses_last_run(self) -> bool:
        """Whether it compares with the last complete run."""
        return isinstance(self.rule.value, Drift) and self.rule.value.reference == "last_run"


def _with_text(schema: dict) -> dict:
    """The schema of the mapping, or of the text that stands for it."""
    mapping = dict(schema)
    schema.clear()
    rule = {"type": "string", "minLength": 1, "description": "What is expected, a warning where it is not."}
    return {"anyOf": [rule, mapping], "description": mapping.pop("description", "")}


def _as_name(text: str) -> str:
    """The text as Dagster takes it in names; where much is lost, a hash keeps two of them apart."""
    spoken = _SIGNS.sub(lambda sign: _WORDS[sign.group()], text)
    plain = _NO_NAME.sub("_", spoken).strip("_")
    plain = re.sub("__+", "_", plain)[:_MAX_NAME_CHARS]
    if _PLAIN.fullmatch(text) and len(spoken) <= _MAX_NAME_CHARS and plain:
        return plain
    return "_".join(filter(None, [plain, xxhash.xxh3_64_hexdigest(text.encode())[:8]]))


def _named_once(rules: Sequence[ExpectSpec]) -> Sequence[ExpectSpec]:
    names = [rule.check_name for rule in rules]
    twice = [place for place, name in enumerate(names) if name in names[:place]]
    if twice:
        found = f"{rules[names.index(names[twice[0]])].that!r} and {rules[twice[0]].that!r}"
        raise ValueError(
            f"two rules are called {names[twice[0]]!r}: {found}; give one of them a `name` of its own"
        )
    return rules


Expectations = Annotated[list[ExpectSpec], AfterValidator(_named_once)]
