"""One step of a pipeline, and the checks of its fields, operator and parameters."""

from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.operator import Operator
from dataflow_assets.operators.registry import build_operator, find_operator
from dataflow_assets.pipeline.checks import Checks, any_blocking
from dataflow_assets.pipeline.environment import redacted, typed_by_field
from dataflow_assets.pipeline.expectations import Expectations
from dataflow_assets.pipeline.graph import graph_problems
from dataflow_assets.pipeline.names import FolderName, StepName
from dataflow_assets.pipeline.problems import (
    Path,
    Problem,
    printable,
    problems_of,
    shortened,
    shown,
    type_hint,
)
from dataflow_assets.pipeline.replicas import ReplicaOptions, replica_problems
from dataflow_assets.serving.spec import BudgetSpec

MODEL_CONFIG = ConfigDict(extra="forbid", strict=True, frozen=True)


class _OperatorOfStep(BaseModel):
    """The first fields of a step: which operator, on what."""

    model_config = MODEL_CONFIG

    name: StepName = Field(description="Unique within the pipeline; a-z, 0-9, _ and -.")
    type: str = Field(description="An operator's name, or `package.module:Class`.")
    params: dict[str, object] = Field(default={}, description="The operator's parameters.")
    depends_on: list[str] | None = Field(
        default=None, description="Names of the steps that feed this one; default: the one before."
    )


class Step(ReplicaOptions, _OperatorOfStep):
    """One operator at work: its parameters, its parents, and how its rows are dealt out.

    `depends_on` is the step before in the file when it is not given; `[]` and `[source]` are the
    source. Rows of several parents are joined on `row_id`. With `replicas`, or anything that a replica
    needs, the rows go to processes on Ray that hold one operator each.
    """

    budget: BudgetSpec | None = Field(default=None, description="Ceilings of the calls of this step.")
    pool: FolderName | None = Field(
        default=None,
        description="Dagster pool whose limit counts the runs with this step: an API key, a kind of GPU. "
        "Default: the pipeline's own.",
    )
    checks: Checks = Field(default=[], description="Limits for what comes out; shown as asset checks.")
    expect: Expectations = Field(
        default=[], description="Rules for the profile of what comes out; shown as asset checks."
    )

    @model_validator(mode="after")
    def _has_one_check_of_a_name(self) -> "Step":
        names = {check.check_name for check in self.checks}
        twice = next((rule for rule in self.expect if rule.check_name in names), None)
        if twice is not None:
            raise ValueError(
                f"expect: {twice.that!r} is called {twice.check_name!r}, as a check is; give it a `name`"
            )
        return self

    @property
    def is_gate(self) -> bool:
        """Whether a check or rule of it stops what is downstream."""
        return any_blocking(self.checks) or any(rule.blocking for rule in self.expect)

    @property
    def may_stop_early(self) -> bool:
        """Whether it is looked at batch by batch, and may stop behind one."""
        return any_blocking(self.checks, each="batch") or any(rule.blocking for rule in self.expect)

    if not TYPE_CHECKING:  # so that type checkers see the fields

        def __init__(self, **data: object) -> None:
            problems = take_over(self, data)
            if problems:
                label = step_label(None, data.get("name"), data.get("type"))
                raise ConfigError([problem_line(problem.message, label) for problem in problems])


def step_label(index: int | None, name: object, kind: object) -> str:
    """`step 2 'plain' (strip_html)`, as far as it is known."""
    parts = ["step"] if index is None else [f"step {index + 1}"]
    if isinstance(name, str):
        parts.append(shown(shortened(str(name), 64)))
    if isinstance(kind, str):
        parts.append(f"({printable(shortened(str(kind), 64))})")
    return " ".join(parts)


def problem_line(message: str, label: str, environment: Mapping[str, str] = {}) -> str:
    """One line of a ConfigError: printable, not too long, without values of the environment."""
    text = f"{label}: {message}" if label else message
    return printable(shortened(redacted(text, environment)))


def take_over(model: BaseModel, data: Mapping[str, object]) -> list[Problem]:
    """Checks the data and makes it the content of `model`; else the mistakes."""
    strange = [key for key in data if not isinstance(key, str)]
    if strange:
        return [Problem(f"the field {shown(key)} is no text", ()) for key in strange]
    kind = type(model)
    try:
        BaseModel.__init__(model, **data)
        return []
    except ValidationError as error:
        first, changed = error, typed_by_field(data, error)
    except ConfigError as error:
        return [Problem(line) for line in error.problems]
    if changed == data:
        return problems_of(first, kind)
    try:
        BaseModel.__init__(model, **changed)
        return []
    except ValidationError as error:
        return problems_of(error, kind)


def checked_steps(
    given: Sequence[object], base_dir: FilePath
) -> tuple[dict[int, Step], dict[str, Operator], list[Problem]]:
    """The good steps by place, their operators by name, and the mistakes of all."""
    steps: dict[int, Step] = {}
    operators: dict[str, Operator] = {}
    problems: list[Problem] = []
    unsure: list[str] = []
    for index, raw in enumerate(given):
        step, found = _step(raw)
        if step is None:
            unsure += [raw["name"]] if isinstance(raw, Mapping) and isinstance(raw.get("name"), str) else []
            problems += [problem.under("steps", index) for problem in found]
            continue
        steps[index], operator, found = _operator(step, base_dir)
        problems += [problem.under("steps", index) for problem in found]
        if operator is not None:
            operators[step.name] = operator
            problems += [problem.under("steps", index) for problem in replica_problems(step, operator)]
    return steps, operators, graph_problems(steps, unsure) + problems


def _step(raw: object) -> tuple[Step | None, list[Problem]]:
    if isinstance(raw, Step):
        return raw, []
    if not isinstance(raw, Mapping):
        return None, [Problem(f"found {shown(raw)}, expected a mapping with `name` and `type`")]
    if "name" not in raw and "type" not in raw:
        keys = ", ".join(shown(key) for key in raw) or "nothing"
        return None, [
            Problem(
                f"a step is a mapping with `name`, `type` and `params`; found one with {keys}. "
                "Parameters stand under `params:`, indented below it"
            )
        ]
    step = Step.__new__(Step)
    problems = take_over(step, raw)
    return (None, problems) if problems else (step, [])


def _operator(step: Step, base_dir: FilePath) -> tuple[Step, Operator | None, list[Problem]]:
    """The step with its parameters typed and hidden, and its operator; or the mistakes in both."""
    try:
        model = find_operator(step.type).Params
    except ConfigError as error:
        return step, None, [Problem(line, ("type",)) for line in error.problems]
    except (Exception, SystemExit) as error:  # noqa: BLE001  importing a user's module may raise anything
        return step, None, [Problem(_raised(step, "loaded", error), ("type",))]
    places: list[tuple[Path, str]] = []
    try:
        params, places = _checked_params(model, step.params, base_dir)
        operator = build_operator(step.type, params, base_dir)
        return step.model_copy(update={"params": _hidden(params, operator.params)}), operator, []
    except ConfigError as error:
        if len(places) != len(error.problems):
            places = [(("params",), "")] * len(error.problems)
        pairs = zip(error.problems, places, strict=True)
        return step, None, [Problem(line + hint, place) for line, (place, hint) in pairs]
    except (Exception, SystemExit) as error:  # noqa: BLE001  a user's operator may raise anything
        return step, None, [Problem(_raised(step, "made", error), ("params",))]


def _raised(step: Step, what: str, error: BaseException) -> str:
    return f"operator {shown(step.type)} cannot be {what}: {type(error).__name__}: {error}"


def _checked_params(
    model: type[BaseModel], params: dict[str, object], base_dir: FilePath
) -> tuple[dict[str, object], list[tuple[Path, str]]]:
    """The parameters, those of the environment typed; path and hint of each pydantic error in them."""
    for last in (False, True):
        try:
            model.model_validate(params, context={"base_dir": base_dir})
            break
        except ValidationError as error:
            if not last:
                params = typed_by_field(params, error)
                continue
            return params, [
                (("params", *found["loc"]), type_hint(found["type"], found["input"]))
                for found in error.errors(include_url=False)
            ]
    return params, []


def _hidden(raw: object, checked: object) -> object:
    """The raw parameters with those that were declared SecretStr as such, so that no repr shows them."""
    if isinstance(checked, SecretStr):
        return checked
    if isinstance(raw, Mapping) and isinstance(checked, BaseModel):
        return {key: _hidden(value, getattr(checked, str(key), None)) for key, value in raw.items()}
    if isinstance(raw, Mapping) and isinstance(checked, Mapping):
        return {key: _hidden(value, checked.get(key)) for key, value in raw.items()}
    if isinstance(raw, list) and isinstance(checked, list | tuple) and len(raw) == len(checked):
        return [_hidden(value, inner) for value, inner in zip(raw, checked, strict=True)]
    return raw


def secrets_in(params: object) -> set[str]:
    """The values of all SecretStr within the parameters."""
    if isinstance(params, SecretStr):
        return {params.get_secret_value()}
    inner = params.values() if isinstance(params, Mapping) else params if isinstance(params, list) else ()
    return {text for value in inner for text in secrets_in(value)}
