"""What plugins are told: one frozen dataclass for each hook, of plain values.

`pipeline` is the pipeline's name. `run_id` is the same in all events of a run: that of Dagster where
Dagster launched it, else a new one. `step` is the name of the asset: of a step, `source`, or
`<step>_state` for what a step decides over all batches, whose rows out are those of its summaries.
Times are in seconds, costs in the currency of the prices.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from dataflow_assets.pipeline_work import PipelineWork

Hook = Literal[
    "on_pipeline_start",
    "on_step_start",
    "on_batch",
    "on_step_end",
    "on_pipeline_end",
    "on_pause",
    "on_failure",
]
RunOutcome = Literal["done", "partial", "paused", "failed"]
StepOutcome = Literal["done", "stopped", "paused", "failed"]


@dataclass(frozen=True)
class DeclaredStep:
    """A step as the pipeline declares it; `params` are plain JSON values, secrets left out."""

    number: int
    name: str
    type: str
    version: str
    params: Mapping[str, object]


@dataclass(frozen=True)
class PipelineStarted:
    """A run begins (`on_pipeline_start`). `folder` holds the files of the pipeline.

    `work` is for a plugin that reads more: rows, records, profiles.
    """

    pipeline: str
    run_id: str
    folder: str
    steps: tuple[DeclaredStep, ...]
    work: "PipelineWork" = field(repr=False, compare=False)


@dataclass(frozen=True)
class StepStarted:
    """A step begins (`on_step_start`). `batches` is how many it has; None where that is not known yet.

    `dagster_run_id` is the run that shows the step in Dagster; None for one that no run shows.
    """

    pipeline: str
    run_id: str
    step: str
    batches: int | None
    dagster_run_id: str | None


@dataclass(frozen=True)
class BatchCommitted:
    """A batch was committed (`on_batch`), or found committed: `reused`, and its numbers are of before.

    `rejected` counts by reason, `failed` by error class. `seconds` is the time of its making. `usage`
    has `calls`, `cached`, `tokens_in`, `tokens_out`, `cost` and `seconds` of the calls to models; it is
    empty for a step that asks none. Where failed rows are tried again, the numbers are those of these
    rows alone.
    """

    pipeline: str
    run_id: str
    step: str
    batch: str
    reused: bool
    rows_in: int
    rows_out: int
    rejected: Mapping[str, int]
    failed: Mapping[str, int]
    seconds: float
    usage: Mapping[str, float]


@dataclass(frozen=True)
class StepEnded:
    """A step ends (`on_step_end`), with the sums over the batches that this run made.

    `seconds` is the time from its start to its end, `work_s` that of the making of its batches, which
    may be many at a time.
    """

    pipeline: str
    run_id: str
    step: str
    outcome: StepOutcome
    batches: int
    reused: int
    rows_in: int
    rows_out: int
    rejected: Mapping[str, int]
    failed: Mapping[str, int]
    seconds: float
    work_s: float
    usage: Mapping[str, float]


@dataclass(frozen=True)
class PipelinePaused:
    """The run ends for a pause (`on_pause`): by `user`, `budget` or `breaker`. `message` has no secrets."""

    pipeline: str
    run_id: str
    step: str | None
    cause: str
    message: str


@dataclass(frozen=True)
class PipelineFailed:
    """The run could not go on (`on_failure`). `message` has no secrets."""

    pipeline: str
    run_id: str
    step: str | None
    error_class: str
    message: str


@dataclass(frozen=True)
class PipelineEnded:
    """The run ends (`on_pipeline_end`), however it does. `partial`: batches are left to do."""

    pipeline: str
    run_id: str
    outcome: RunOutcome
    seconds: float


Event = (
    PipelineStarted
    | StepStarted
    | BatchCommitted
    | StepEnded
    | PipelinePaused
    | PipelineFailed
    | PipelineEnded
)
