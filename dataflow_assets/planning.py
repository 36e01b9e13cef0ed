"""What is to be done: which assets, and which range of batches, so that all is up to date."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dataflow_assets.checks import FailedGate, failed_gates, with_all_above
from dataflow_assets.pipeline import Step
from dataflow_assets.pipeline_work import PipelineWork, state_name

RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


class Plan(NamedTuple):
    """The assets to materialize, the batches from the first to the last that is not done, and what holds.

    `gates` are the failed blocking checks of the steps and of what they depend on.
    """

    names: list[str]
    keys: list[str]
    gates: list[FailedGate]


def is_up_to_date(work: PipelineWork, keys: Sequence[str], any_format: bool = False) -> bool:
    """Whether nothing is to do in the whole pipeline, and no blocking check fails."""
    plan = plan_of(work, work.pipeline.ordered_steps, keys, any_format)
    return not plan.names and not plan.gates


def plan_of(work: PipelineWork, steps: Sequence[Step], keys: Sequence[str], any_format: bool = False) -> Plan:
    """What is to do for these steps.

    A batch is to do where its record is missing or made of other code, parameters or input than
    now, or where its parent's is; unless `any_format`, also where it is stored in another format.
    Dagster runs ranges: batches within it that are done are left alone by the IO manager. Nothing
    downstream of a blocking check that fails is to do, unless the check's own step is made again
    before.
    """
    wanted = {step.name for step in steps}
    looked_at = with_all_above(work.pipeline, wanted)
    planning = _Planning(work, keys, any_format)
    for step in work.pipeline.ordered_steps:
        if step.name in looked_at:
            planning.add(step, step.name in wanted)
    dirty = planning.dirty.values()
    positions = [place for place, key in enumerate(keys) if any(key in some for some in dirty)]
    span = list(keys[positions[0] : positions[-1] + 1]) if positions else []
    return Plan(planning.names, span, planning.gates)


@dataclass
class _Planning:
    work: PipelineWork
    keys: Sequence[str]
    any_format: bool
    names: list[str] = field(default_factory=list)
    dirty: dict[str, set[str]] = field(default_factory=dict)
    gates: list[FailedGate] = field(default_factory=list)
    held: set[str] = field(default_factory=set)

    def add(self, step: Step, is_wanted: bool) -> None:
        """Looks at a step after all that it depends on."""
        parents = self.work.pipeline.parents(step.name)
        if self.held & set(parents):
            self.held.add(step.name)
            return
        names, dirty = self._undone(step, parents) if is_wanted else ([], set())
        gates = failed_gates(self.work, step, dirty)
        if gates:
            self.held.add(step.name)
            self.gates += gates
            return
        self.names += names
        self.dirty[step.name] = dirty

    def _undone(self, step: Step, parents: Sequence[str]) -> tuple[list[str], set[str]]:
        """The assets of the step that are to do, and its batches."""
        work, names = self.work, []
        undone = set().union(*(self.dirty.get(parent, set()) for parent in parents))
        state = work.state(step)
        if state is not None and (undone or not work.reuse or not state.is_done()):
            names.append(state_name(step.name))
            undone = set(self.keys)
        done = work.step(step)
        all_anew, of_any = not work.reuse, self.any_format
        dirty = {key for key in self.keys if all_anew or key in undone or not done.is_done(key, of_any)}
        return ([*names, step.name] if dirty else names), dirty
