"""Judges rows: scores by a rubric, and keeps or rejects by a criterion or a score."""

from collections.abc import Mapping

from pydantic import Field, field_validator, model_validator

from dataflow_assets.batch import Schema
from dataflow_assets.errors import MissingValue, WrongType
from dataflow_assets.operators.llm.operator import Ask, Done, Rejected
from dataflow_assets.operators.llm.prompt_params import StructuredParams
from dataflow_assets.operators.llm.prompted import StructuredOperator
from dataflow_assets.operators.llm.shipped import prompt_text
from dataflow_assets.operators.llm.template import text_of
from dataflow_assets.operators.registry import register
from dataflow_assets.serving.calls import Call

# The rubric of the classic text-to-QA and instruction pipelines: ten points, kept from seven on.
RUBRIC = {"accuracy": 3.0, "relevance": 2.0, "clarity": 2.0, "usefulness": 3.0}
MIN_SCORE = 7.0
_PROMPT, _MEANINGS = "score_with_llm", "score_with_llm.meanings"


class JudgeParams(StructuredParams):
    """Parameters of an operator that scores rows by a rubric."""

    columns: list[str] = Field(
        ["instruction", "answer"],
        min_length=1,
        description="What is judged; together `{sample}` in the prompt.",
    )
    rubric: dict[str, float] = Field(
        RUBRIC, min_length=1, description="The most points for each criterion; `{rubric}` in the prompt."
    )
    meanings: dict[str, str] = Field(
        {}, description="What a criterion means; the four of the default rubric are shipped."
    )
    prefix: str = Field("score_", description="Begins the names of the columns of scores.")

    @field_validator("rubric")
    @classmethod
    def _has_points(cls, rubric: dict[str, float]) -> dict[str, float]:
        for name, points in rubric.items():
            if name in ("total", "reason") or not name:
                raise ValueError(f"a criterion cannot be called {name!r}; that column is taken")
            if not 0 < points < float("inf"):
                raise ValueError(f"criterion {name!r} has {points:g} points, expected more than 0")
        return rubric

    @model_validator(mode="after")
    def _meanings_are_of_the_rubric(self) -> "JudgeParams":
        if strange := [name for name in self.meanings if name not in self.rubric]:
            raise ValueError(f"meanings of what is not in the rubric: {', '.join(map(repr, strange))}")
        return self


class JudgeOperator(StructuredOperator):
    """An operator that shows columns to a model and asks for scores by a rubric."""

    prompt_name = _PROMPT
    pieces = (_MEANINGS,)
    fills = ("sample", "rubric")
    Params = JudgeParams
    params: JudgeParams

    def reads(self) -> list[str]:
        """The judged columns, where the prompt shows them, and those that the prompt names."""
        template = self.template("en")
        shown = self.params.columns if template and "sample" in template.columns() else []
        return list(dict.fromkeys([*shown, *super().reads()]))

    def sample(self, row: Mapping[str, object]) -> str:
        """The judged columns as one text. Raises MissingValue where one is null or all are blank."""
        texts = {column: text_of(row, column) for column in self.params.columns}
        if not any(text.strip() for text in texts.values()):
            names = ", ".join(map(repr, texts))
            raise MissingValue(f"missing text: the row has only blank text in the columns {names}")
        if len(texts) == 1:
            return next(iter(texts.values()))
        return "\n\n".join(f"[{column}]\n{text}" for column, text in texts.items())

    def score_columns(self) -> Schema:
        """A column for each criterion, the total, and the reason."""
        prefix = self.params.prefix
        numbers: Schema = {f"{prefix}{name}": "float64" for name in [*self.params.rubric, "total"]}
        return {**numbers, f"{prefix}reason": "string", **self.marks()}

    async def scores(self, row: Mapping[str, object], ask: Ask) -> dict[str, object]:
        """The values of those columns."""
        schema = scores_schema(self.params.rubric)
        words = {"rubric": self._rubric_text(row)}
        value, repaired = await ask(self.judge_call(row, schema, words), self.value_check(schema))
        points = {name: float(value[name]) for name in self.params.rubric}
        found = {**points, "total": sum(points.values()), "reason": value["reason"].strip()}
        return self.marked({f"{self.params.prefix}{name}": each for name, each in found.items()}, repaired)

    def judge_call(
        self, row: Mapping[str, object], schema: Mapping[str, object], words: Mapping[str, str]
    ) -> Call:
        """A structured call about the row's sample, where the prompt shows it."""
        template = self.template("en")
        shown = {"sample": self.sample(row)} if template and "sample" in template.columns() else {}
        return self.structured_call(row, schema, {**words, **shown})

    def _rubric_text(self, row: Mapping[str, object]) -> str:
        lines = prompt_text(_MEANINGS, self.language(row)).split("\n")
        shipped = dict(line.split(": ", 1) for line in lines)
        meanings = {**shipped, **self.params.meanings}
        return "\n".join(
            f"- {name}: 0-{points:g}" + (f" ({meanings[name]})" if name in meanings else "")
            for name, points in self.params.rubric.items()
        )


def scores_schema(rubric: Mapping[str, float]) -> dict[str, object]:
    """The schema of an answer: the reason first, so that it is thought of before the points."""
    points = {name: {"type": "number", "minimum": 0, "maximum": most} for name, most in rubric.items()}
    return _object_schema({"reason": {"type": "string"}, **points})


def _object_schema(fields: Mapping[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }


@register
class ScoreWithLLM(JudgeOperator):
    """Scores rows by a rubric: points for each criterion, their total, and the reason.

    Grain: one row in, one row out; order and ids unchanged. Reads `columns`. Writes, after `prefix`,
    a number for each criterion (float, 0 to its most points), `total` (their sum) and `reason`
    (string), with `repair` also `repaired` (bool). Default rubric: accuracy 3, relevance 2, clarity
    2, usefulness 3; `filter_with_llm` keeps from 7 on. Fails a row with a null column as
    MissingValue, an answer as `json_parse` or `schema_invalid` (also for points beyond the rubric).

    Example:
        - {name: judged, type: score_with_llm, params: {columns: [question, answer], rubric: {correct: 5.0}}}
    """

    name = "score_with_llm"

    def writes(self) -> Schema:
        """The columns of scores."""
        return self.score_columns()

    async def do(self, row: Mapping[str, object], ask: Ask) -> Done:
        """The scores."""
        return await self.scores(row, ask)


class _FilterParams(JudgeParams):
    columns: list[str] = Field(
        ["text"], min_length=1, description="What is judged; `{sample}` in the prompt."
    )
    criterion: str | None = Field(
        None,
        min_length=1,
        description="What a row must be to be kept, in words; `{criterion}` in the prompt.",
    )
    reasons: list[str] = Field(
        ["rejected_by_model"], min_length=1, description="Names of the reasons to reject, for `criterion`."
    )
    score_column: str | None = Field(
        None, min_length=1, description="A number that is there already: nothing is asked, only compared."
    )
    min_score: float = Field(
        MIN_SCORE, description="Rows with less in total, or in `score_column`, are rejected."
    )

    @model_validator(mode="after")
    def _has_one_rule(self) -> "_FilterParams":
        if self.criterion is not None and self.score_column is not None:
            raise ValueError("give criterion or score_column, not both")
        if any(not reason.strip() for reason in self.reasons):
            raise ValueError("a reason is blank; expected a name, e.g. off_topic")
        asks_for_score = self.criterion is None and self.score_column is None
        if asks_for_score and self.min_score > sum(self.rubric.values()):
            raise ValueError(
                f"min_score {self.min_score:g} is above the rubric's {sum(self.rubric.values()):g} points"
            )
        return self


@register
class FilterWithLLM(JudgeOperator):
    """Keeps or rejects rows by a criterion in words, by a rubric's total, or by a score that is there.

    Grain: one row in, at most one out; order, ids and values unchanged. With `criterion`, reads
    `columns` and rejects with one of `reasons`, as the model chooses. With `score_column`, asks
    nothing and rejects with `score_below_minimum` what is under `min_score`. With neither, scores
    `columns` by the rubric as `score_with_llm` does, adds its columns, and rejects the same way;
    default: 7 of 10. With `repair`, adds `repaired` (bool) where a model is asked. Fails a row with
    a null column as MissingValue, an answer as `json_parse` or `schema_invalid`.

    Example:
        - {name: on_topic, type: filter_with_llm, params: {criterion: The text is about physics.}}
        - {name: good, type: filter_with_llm, params: {score_column: score_total, min_score: 7.0}}
    """

    name = "filter_with_llm"
    fills = ("sample", "rubric", "criterion")
    Params = _FilterParams
    params: _FilterParams  # pyright: ignore[reportIncompatibleVariableOverride]

    def shipped_name(self) -> str:
        """The prompt for a criterion or for scores; none where nothing is asked."""
        if self.params.score_column is not None:
            return ""
        return self.name if self.params.criterion is not None else _PROMPT

    def reads(self) -> list[str]:
        """The score's column, or what the model is shown."""
        return [self.params.score_column] if self.params.score_column else super().reads()

    def writes(self) -> Schema:
        """The columns of scores where the model gives them; none otherwise."""
        if self.params.score_column is not None:
            return {}
        return self.marks() if self.params.criterion is not None else self.score_columns()

    async def do(self, row: Mapping[str, object], ask: Ask) -> Done:
        """The rejection, or what is added to the row."""
        if self.params.score_column is not None:
            score = _number(row, self.params.score_column)
            return _too_low({self.params.score_column: score}) if score < self.params.min_score else {}
        if self.params.criterion is not None:
            return await self._by_criterion(row, ask, self.params.criterion)
        found = await self.scores(row, ask)
        total = _number(found, f"{self.params.prefix}total")
        return _too_low(found) if total < self.params.min_score else found

    async def _by_criterion(self, row: Mapping[str, object], ask: Ask, criterion: str) -> Done:
        verdicts = {"type": "string", "enum": ["keep", *dict.fromkeys(self.params.reasons)]}
        schema = _object_schema({"reason": {"type": "string"}, "verdict": verdicts})
        value, repaired = await ask(
            self.judge_call(row, schema, {"criterion": criterion}), self.value_check(schema)
        )
        if value["verdict"] != "keep":
            return Rejected(value["verdict"], value)
        return self.marked({}, repaired)


def _too_low(scores: Mapping[str, object]) -> Rejected:
    return Rejected("score_below_minimum", scores)


def _number(row: Mapping[str, object], column: str) -> float:
    score = row.get(column)
    if score is None:
        raise MissingValue(f"missing {column}: the row has no score in column {column!r}")
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise WrongType(f"wrong type: column {column!r} holds {type(score).__name__}, expected a number")
    return score
