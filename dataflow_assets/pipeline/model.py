"""A pipeline: its source, its steps and their graph, checked as a whole before any work.

`Pipeline(...)` and `Step(...)` raise ConfigError with one line for each mistake; `load_pipeline`
makes them from a file, with the line of each.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import BaseModel, Field, PrivateAttr, ValidationInfo, field_validator

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.llm.operator import LLMOperator
from dataflow_assets.operators.operator import Operator
from dataflow_assets.operators.registry import build_operator
from dataflow_assets.pipeline.environment import redacted
from dataflow_assets.pipeline.graph import children_of, parents_of, topological
from dataflow_assets.pipeline.names import SOURCE, FolderName, Owner
from dataflow_assets.pipeline.notice import FailureNotice
from dataflow_assets.pipeline.problems import Problem, listed, near_names, printable, shortened, shown
from dataflow_assets.pipeline.profiling import ProfileSpec
from dataflow_assets.pipeline.step import (
    MODEL_CONFIG,
    Step,
    checked_steps,
    problem_line,
    secrets_in,
    step_label,
    take_over,
)
from dataflow_assets.serving.choice import asked_servings, bind_servings, serving_of, unbounded
from dataflow_assets.serving.spec import BudgetSpec, ServingSpec
from dataflow_assets.sources.kinds import AnySource
from dataflow_assets.sources.reading_spec import ReadingSpec
from dataflow_assets.sources.spec import SourceSpec

_URL = re.compile(r"[a-z][a-z0-9+.-]*://")


Format = Literal["jsonl", "json", "csv", "parquet", "pickle"]


class Origin(NamedTuple):
    """Where a pipeline was written: `lines` holds the line of each step, `environment` what to hide."""

    base_dir: Path
    file: Path | None = None
    lines: Sequence[int] = ()
    environment: Mapping[str, str] = {}


class Pipeline(BaseModel):
    """A data set's way through steps. Files go to `<root>/<name>/<prefix>_step<N>/`.

    A batch is closed at `batch_rows` rows or `batch_bytes` bytes, whichever comes first;
    `batch_rows: null` makes the whole data set one batch and one file a step.
    """

    model_config = MODEL_CONFIG

    name: FolderName = Field(description="The folder and asset group of the pipeline.")
    description: str = ""
    source: AnySource = Field(description="What is read: files, a data set, or rows that are made.")
    batch_rows: int | None = Field(default=10_000, ge=1, description="Rows in a batch; null: all in one.")
    batch_bytes: int = Field(default=64 * 2**20, ge=1, description="Bytes at which a batch is closed.")
    format: Format = Field(default="jsonl", description="Format of the step files.")
    prefix: FolderName = Field(
        default_factory=lambda data: data.get("name", ""), description="First part of the step folders."
    )
    root: str | None = Field(default=None, min_length=1, description="Folder or fsspec URL of all files.")
    write: Literal["immediate", "lazy"] = Field(
        default="immediate",
        description="`immediate`: each batch is committed when it is made. `lazy`: batches are held in "
        "memory and committed together, at the end of a step, at `lazy_bytes`, when the run is stopped, and "
        "on `dataflow-assets flush`; a SIGKILL costs those that are held.",
    )
    lazy_bytes: int = Field(
        default=256 * 2**20, ge=1, description="Bytes of rows at which batches that are held are committed."
    )
    workers: int | None = Field(default=None, ge=1, description="Workers a step; default: the cores.")
    allow_pickle: bool = Field(default=False, validate_default=True, description="Allows format pickle.")
    servings: dict[FolderName, ServingSpec] = Field(
        default={}, description="Models to ask, by name; steps without `serving` ask `default`."
    )
    budget: BudgetSpec | None = Field(default=None, description="Ceilings of all calls of the pipeline.")
    ledger: str | None = Field(
        default=None,
        min_length=1,
        description="File or database URL of the answers; default: `ledger.sqlite` in the root.",
    )
    profile: ProfileSpec | Literal[False] = Field(
        default=ProfileSpec(), description="How each batch is profiled; false: not at all."
    )
    license: str | None = Field(
        default=None,
        min_length=1,
        description="Licence of the data set for its data card, as Hugging Face names it: `cc-by-4.0`.",
    )
    plugins: dict[str, dict[str, object] | bool] = Field(
        default={}, description="Plugins that are told of runs, with their settings; `false`: not this one."
    )
    owners: list[Owner] = Field(
        default=[], description="Who answers for it, shown in Dagster: e-mail addresses or `team:NAME`."
    )
    on_failure: FailureNotice | None = Field(
        default=None, description="Who is told of a run that failed; default: DATAFLOW_ON_FAILURE_*."
    )
    steps: list[Step] = Field(min_length=1)

    _origin: Origin = PrivateAttr(default_factory=lambda: Origin(Path.cwd()))

    if not TYPE_CHECKING:

        def __init__(self, **data: object) -> None:
            problems = self._fill(data, Path.cwd())
            if problems:
                raise ConfigError(problem_lines(problems, data, Origin(Path.cwd())))

    @field_validator("allow_pickle")
    @classmethod
    def _pickle_is_allowed(cls, allowed: bool, info: ValidationInfo) -> bool:
        if info.data.get("format") == "pickle" and not allowed:
            raise ValueError(
                "format pickle runs code when it is read; say allow_pickle: true if all files are your own"
            )
        return allowed

    @classmethod
    def from_data(cls, data: Mapping[str, object], origin: Origin) -> "tuple[Pipeline, list[Problem]]":
        """The pipeline of this plain data, to be used only where no mistakes come with it."""
        pipeline = cls.__new__(cls)
        problems = pipeline._fill(data, origin.base_dir)
        if not problems:
            pipeline._origin = origin
        return pipeline, problems

    def _fill(self, data: Mapping[str, object], base_dir: Path) -> list[Problem]:
        """Checks and takes over the data; the mistakes of all parts together."""
        given = data.get("steps")
        steps, operators, problems = (
            checked_steps(given, base_dir) if isinstance(given, list) else ({}, {}, [])
        )
        whole = {**data, "steps": list(steps.values())} if isinstance(given, list) else data
        fields = take_over(self, whole)
        if problems:
            fields = [problem for problem in fields if problem.path[:1] != ("steps",)]
        if fields or problems:
            return fields + problems
        vars(self).update(_operators=operators)
        return self._batch_problems(operators) + self._serving_problems(operators)

    def _batch_problems(self, operators: Mapping[str, Operator]) -> list[Problem]:
        """An operator that must get all rows at once needs a pipeline with one batch."""
        if self.batch_rows is None:
            return []
        return [
            Problem(
                f"{operators[step.name].name} needs all rows of the data set at once, and batch_rows is "
                f"{self.batch_rows}; say `batch_rows: null`, or another `scope`",
                ("steps", place, "type"),
            )
            for place, step in enumerate(self.steps)
            if operators[step.name].needs_all_rows
        ]

    def _serving_problems(self, operators: Mapping[str, Operator]) -> list[Problem]:
        """The mistakes in what steps ask; without any, the operators know their models."""
        problems = []
        for place, step in enumerate(self.steps):
            try:
                bind_servings({step.name: operators[step.name]}, self.servings)
            except (ConfigError, OSError) as error:
                problems.append(Problem(str(error), ("steps", place, "params", "serving")))
        return problems or self._budget_problems(operators)

    def _budget_problems(self, operators: Mapping[str, Operator]) -> list[Problem]:
        """A budget holds only where the most that a call can cost is known before it is sent."""
        problems = []
        places = {step.name: place for place, step in enumerate(self.steps)}
        for name, operator, spec in asked_servings(operators, self.servings):
            budgets = [budget for budget in (self.budget, self.steps[places[name]].budget) if budget]
            message = unbounded(operator, spec, budgets)
            if message:
                problems.append(Problem(message, ("steps", places[name])))
        return problems

    def serving(self, step: Step | str) -> ServingSpec | None:
        """The serving that a step asks; None for a step that asks no model."""
        operator = self.operator(step)
        return serving_of(operator.serving, self.servings) if isinstance(operator, LLMOperator) else None

    @property
    def base_dir(self) -> Path:
        """The folder from which relative paths count: the file's, or the working folder at the time."""
        return self._origin.base_dir

    @property
    def file(self) -> Path | None:
        """The file that the pipeline was loaded from, None when it was built in Python."""
        return self._origin.file

    @property
    def resolved_root(self) -> str | None:
        """`root` as an absolute path, relative ones counted from `base_dir`; URLs as they are."""
        return None if self.root is None else resolved(self.root, self.base_dir)

    @cached_property
    def _parents(self) -> dict[str, list[str]]:
        return parents_of(self.steps)

    @cached_property
    def ordered_steps(self) -> list[Step]:
        """The steps, each after its parents, ties in file order."""
        return [self.steps[self._places[name]] for name in topological(self._parents)]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {step.name: place for place, step in enumerate(self.steps)}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {step.name: number for number, step in enumerate(self.ordered_steps, 1)}

    def step(self, step: Step | str) -> Step:
        """The step of this name. Raises ConfigError where there is none."""
        name = step if isinstance(step, str) else step.name
        if name in self._places:
            return self.steps[self._places[name]]
        names, hint = listed(self._numbers), near_names(name, self._numbers)
        raise ConfigError(f"pipeline {self.name!r} has no step {shown(name)} (it has: {names}){hint}")

    def selected(self, names: Collection[str]) -> list[Step]:
        """The steps of these names in their order, all without names; `source` names no step.

        Raises ConfigError for a name that there is not.
        """
        for name in names:
            if name != SOURCE:
                self.step(name)
        return [step for step in self.ordered_steps if not names or step.name in names]

    def step_number(self, step: Step | str) -> int:
        """The number of the step in its folder's name: 1 for the first in topological order."""
        return self._numbers[self.step(step).name]

    def parents(self, step: Step | str) -> list[str]:
        """Whose rows the step gets: names of steps, or `source`."""
        return self._parents[self.step(step).name]

    def children(self, step: Step | str) -> list[str]:
        """Who gets the rows of this step, or of `source`; in file order."""
        return children_of(self._parents)[SOURCE if step == SOURCE else self.step(step).name]

    def operator(self, step: Step | str) -> Operator:
        """The operator of this step, made once."""
        return self._operators[self.step(step).name]

    @cached_property
    def _operators(self) -> dict[str, Operator]:
        operators = {step.name: build_operator(step.type, step.params, self.base_dir) for step in self.steps}
        bind_servings(operators, self.servings)
        return operators

    def line(self, step: Step | str) -> int | None:
        """The line at which the step was written in `file`; None when it was built in Python."""
        return None if self.file is None else self._origin.lines[self._places[self.step(step).name]]

    def place(self, step: Step | str) -> str:
        """Where the step was written, as a message begins: `four.yaml:7: step 2 'plain' (strip_html)`."""
        known = self.step(step)
        index = self._places[known.name]
        label = step_label(index, known.name, known.type)
        if self.file is None:
            return f"pipeline {self.name!r}: {label}"
        return f"{printable(str(self.file))}:{self._origin.lines[index]}: {label}"

    def secret_values(self) -> set[str]:
        """The values of all SecretStr parameters, for whoever has to keep them out of a text."""
        servings = [dict(spec) for spec in self.servings.values()]
        return {
            text for part in [*(step.params for step in self.steps), *servings] for text in secrets_in(part)
        }

    def redacted(self, message: str) -> str:
        """The message without secrets and without values that came from the environment."""
        secrets = dict.fromkeys(filter(None, self.secret_values()), "**********")
        return redacted(message, {**secrets, **self._origin.environment})

    def redacted_values(self, values: Mapping[str, object]) -> dict[str, object]:
        """Plain JSON values in which every text is redacted, however deep."""

        def hidden(value: object) -> object:
            if isinstance(value, str):
                return self.redacted(value)
            if isinstance(value, Mapping):
                return {str(name): hidden(inner) for name, inner in value.items()}
            return list(map(hidden, value)) if isinstance(value, list | tuple) else value

        return {name: hidden(value) for name, value in values.items()}

    def with_changes(
        self,
        *,
        input: str | None = None,
        root: str | None = None,
        format: str | None = None,
        batch_rows: int | None = None,
        workers: int | None = None,
        serving: str | None = None,
        servings: Mapping[str, ServingSpec] | None = None,
        source: ReadingSpec | None = None,
        ledger: str | None = None,
        steps: Sequence[Step] | None = None,
        plugins: Mapping[str, Mapping[str, object] | bool] | None = None,
    ) -> "Pipeline":
        """The same pipeline with what a command line overrides; None leaves a field as it is.

        `input` and `root` are the user's words: relative ones count from the working folder.
        """
        here = Path.cwd()
        changes: dict[str, object] = {"format": format, "batch_rows": batch_rows, "workers": workers}
        changes["root"] = None if root is None else resolved(root, here)
        changes["source"] = source if input is None else self._source_at(resolved(input, here))
        changes["ledger"] = ledger
        changes["plugins"] = None if plugins is None else self._plugins_with(plugins)
        kept = {name: getattr(self, name) for name in self.model_fields_set}
        changes["servings"] = {**self.servings, **servings} if servings else None
        asked = None if serving is None else [self._asking(step, serving) for step in self.steps]
        changes["steps"] = asked if steps is None else list(steps)
        changed = {**kept, **{name: value for name, value in changes.items() if value is not None}}
        pipeline, problems = Pipeline.from_data(changed, self._origin)
        if problems:
            raise ConfigError(problem_lines(problems, changed, self._origin._replace(file=None)))
        return pipeline

    def _plugins_with(self, more: Mapping[str, Mapping[str, object] | bool]) -> dict[str, object]:
        """The plugins with these settings over their own, which turn one on; or switched on or off."""
        changed: dict[str, object] = dict(self.plugins)
        for name, settings in more.items():
            own = self.plugins.get(name)
            own = own if isinstance(own, dict) else {}
            changed[name] = settings if isinstance(settings, bool) else {**own, **settings}
        return changed

    def _asking(self, step: Step, serving: str) -> Step:
        if not isinstance(self.operator(step), LLMOperator):
            return step
        return step.model_copy(update={"params": {**step.params, "serving": serving}})

    def _source_at(self, path: str) -> ReadingSpec:
        """The source with other files; in place of one of another kind, the files alone."""
        if not isinstance(self.source, SourceSpec):
            return SourceSpec(path=path)
        field = "path" if self.source.files is None else "files"
        return self.source.model_copy(update={field: path})

    def __getstate__(self) -> dict:
        state = super().__getstate__()
        fields = {name: value for name, value in state["__dict__"].items() if name in type(self).model_fields}
        return {**state, "__dict__": fields}


def resolved(path: str, base_dir: Path) -> str:
    """The path made absolute from `base_dir`; a URL (`scheme://…`) as it is."""
    return path if _URL.match(path) else str(base_dir / Path(path).expanduser())


def problem_lines(
    problems: Sequence[Problem], data: Mapping[str, object], origin: Origin, where: str | None = None
) -> list[str]:
    """The mistakes as lines of a ConfigError: place, step, message."""
    if where is None:
        name = data.get("name")
        where = f"pipeline {shown(shortened(str(name), 64))}" if isinstance(name, str) else "pipeline"
    lines = []
    for problem in problems:
        at = where if problem.line is None else f"{where}:{problem.line}"
        label = _label_at(problem, data)
        lines.append(f"{printable(at)}: {problem_line(problem.message, label, origin.environment)}")
    return list(dict.fromkeys(lines))


def _label_at(problem: Problem, data: Mapping[str, object]) -> str:
    steps = data.get("steps")
    if len(problem.path) < 2 or problem.path[0] != "steps" or not isinstance(steps, list):
        return ""
    index = problem.path[1]
    if not isinstance(index, int) or index >= len(steps):
        return ""
    step = steps[index]
    if isinstance(step, Step):
        return step_label(index, step.name, step.type)
    fields = step if isinstance(step, Mapping) else {}
    return step_label(index, fields.get("name"), fields.get("type"))
