"""What a rule is judged by: commit records, profiles of batches, and the references of drift."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import ROW_ID, Schema
from dataflow_assets.expectations.drift import reference_of
from dataflow_assets.expectations.references import last_run_reference, read_reference
from dataflow_assets.expectations.targets import Target
from dataflow_assets.fingerprints import hash_of
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.pipeline.rule_grammar import Reference, Rule
from dataflow_assets.profiles.of_steps import profile_of
from dataflow_assets.profiles.profile import Profile, merged

if TYPE_CHECKING:
    from dataflow_assets.io.step_folder import StepFolder
    from dataflow_assets.pipeline import Step
    from dataflow_assets.pipeline_work import PipelineWork
    from dataflow_assets.profiles.profiler import Profiler


@dataclass(frozen=True)
class Evidence:
    """The committed batches of one step, looked at when asked for; what was read stays.

    `targets` are what the rules are measured of: no other column is put together. `known` are profiles that
    were read for the same rules before, by the content of their rows.
    """

    work: "PipelineWork"
    step: "Step"
    records: Sequence[CommitRecord]
    targets: Mapping[Rule, Target | ValueError | None]
    schema: Schema
    known: dict[tuple[str, frozenset[str]], Profile]

    @cached_property
    def folder(self) -> "StepFolder":
        """The folder of the step."""
        return self.work.folder_of(self.step.name)

    @cached_property
    def profiler(self) -> "Profiler":
        """What makes the profiles: rules that need them are refused where there are none."""
        profiler = self.work.profiler(self.step.name)
        assert profiler is not None
        return profiler

    @cached_property
    def parts(self) -> list[Profile]:
        """The profile of each batch. Raises CorruptFile, StorageError."""
        wanted = frozenset(target.column for target in self.targets.values() if isinstance(target, Target))
        for record in self.records:
            if (record.content_hash, wanted) not in self.known:
                found = self.profiler.of_batch(self.folder, record)
                columns = {name: column for name, column in found.columns.items() if name in wanted}
                self.known[record.content_hash, wanted] = replace(found, columns=columns)
        return [_of(self.known[record.content_hash, wanted], record.batch) for record in self.records]

    @cached_property
    def profile(self) -> Profile:
        """The profile of all batches together."""
        return merged(self.parts)

    def rows(self, record: CommitRecord, part: str = "kept") -> pa.Table | None:
        """The rows of a batch, None where it has none of this part."""
        return self.folder.read(record.batch, part, record)

    def row(self, batch: str, row_id: str) -> dict[str, object]:
        """One row by its id; empty where it is not there."""
        record = next((each for each in self.records if each.batch == batch), None)
        table = None if record is None else self.rows(record)
        if table is None:
            return {}
        place = pc.index(table[ROW_ID], row_id).as_py()
        return {} if place < 0 else table.slice(place, 1).to_pylist()[0]

    def reference(self, reference: Reference) -> dict | None:
        """What drift is measured against, None where there is none yet. Raises ConfigError for a bad file."""
        if reference == "last_run":
            return last_run_reference(self.folder, contents_of(self.records), self.profiler.measures)
        if reference == "before":
            return self._before
        return read_reference(self.work.pipeline.base_dir, reference.name)

    @cached_property
    def _before(self) -> dict | None:
        """The profile of the parents: each column from the first of them that has it."""
        keys = [record.batch for record in self.records]
        operator = self.work.pipeline.operator(self.step.name)
        before: dict = {}
        for parent in self.work.pipeline.parents(self.step.name):
            found = reference_of(profile_of(self.work, parent, None if operator.regroups else keys))
            before = {**found, **before, "columns": {**found["columns"], **before.get("columns", {})}}
        return before


def contents_of(records: Sequence[CommitRecord]) -> str:
    """Changes where the rows of a batch do."""
    return hash_of([[record.batch, record.content_hash] for record in records])


def _of(profile: Profile, batch: str) -> Profile:
    """The profile as that of this batch; batches with the same rows share one."""
    sample = profile.sample
    return replace(profile, sample=sample._replace(batches=[batch] * len(sample.row_ids)))
