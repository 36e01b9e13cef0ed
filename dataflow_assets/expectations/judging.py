"""How the rules of a step stand over its committed batches; at the end, or sooner where that is sure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import orjson
import xxhash

from dataflow_assets.errors import ConfigError, StorageError
from dataflow_assets.expectations.bounds import RISK
from dataflow_assets.expectations.evidence import Evidence, contents_of
from dataflow_assets.expectations.examples import ExampleRow, examples_of
from dataflow_assets.expectations.findings import finding, passes
from dataflow_assets.expectations.messages import message_of
from dataflow_assets.expectations.references import LAST_RUNS_FILE
from dataflow_assets.expectations.targets import Columns, Target, target_of
from dataflow_assets.fingerprints import hash_of
from dataflow_assets.io import atomic
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.layout import STATE
from dataflow_assets.pipeline.expectations import ExpectSpec
from dataflow_assets.pipeline.rule_grammar import Drift, File
from dataflow_assets.profiles.profile import Profile

if TYPE_CHECKING:
    from dataflow_assets.pipeline import Step
    from dataflow_assets.pipeline_work import PipelineWork

JUDGEMENTS_FILE = "expectations.json"
_VERSION = 1
# Of many batches not every one is judged by itself: looking costs time in proportion to what was seen.
_LOOK_AT_EACH = 20


@dataclass(frozen=True)
class Judgement:
    """How a rule stands: kept or not, its value, what is said of it, and rows that show why not."""

    passed: bool
    value: float | None
    message: str
    examples: list[ExampleRow] = field(default_factory=list)


def is_looked_at(batches: int) -> bool:
    """Whether rules are judged after so many batches."""
    return batches % -(-batches // _LOOK_AT_EACH) == 0


class StepRules:
    """The rules of one step, and what was read for them."""

    def __init__(self, work: "PipelineWork", step: "Step") -> None:
        self._work, self._step = work, step
        self._known: dict[str, Profile] = {}
        self._stored: dict[str, Judgement] | None = None
        self._used: dict[str, Judgement] = {}

    def results(self, records: Sequence[CommitRecord], batches: int) -> list[Judgement]:
        """How each rule stands over these of so many batches. Raises CorruptFile, StorageError."""
        if not records:
            return []
        evidence = self._evidence(records)
        contents = contents_of(records)
        return [self._stored_or_made(spec, evidence, contents, batches) for spec in self._step.expect]

    def broken_for_sure(
        self, records: Sequence[CommitRecord], batches: int, only_errors: bool = True
    ) -> list[tuple[ExpectSpec, Judgement]]:
        """The rules that are broken whatever the other batches hold, if those are like the ones seen.

        All looks together are wrong once in a thousand steps: each takes a part of the risk.
        """
        if not records:
            return []
        done = len(records)
        evidence, risk = self._evidence(records), RISK / (done * (done + 1))
        broken = []
        for spec in self._step.expect:
            if (only_errors and not spec.blocking) or isinstance(spec.rule.value, Drift):
                continue
            target = self._target(spec, evidence)
            if finding(spec.rule, target, evidence, risk).surely_breaks(spec.rule):
                broken.append((spec, self._judged(spec, evidence, batches)))
        return broken

    def save(self) -> None:
        """Stores what was judged, in place of what was stored before. Raises StorageError."""
        if self._used != (self._stored if self._stored is not None else self._read()):
            atomic.make_folder(self._file.parent)
            found = {name: asdict(judgement) for name, judgement in self._used.items()}
            atomic.write_atomically(self._file, orjson.dumps(found, option=orjson.OPT_SORT_KEYS))
            self._stored = dict(self._used)

    def _stored_or_made(self, spec: ExpectSpec, evidence: Evidence, contents: str, batches: int) -> Judgement:
        profiler = self._work.profiler(self._step.name)
        name = hash_of(
            [
                _VERSION,
                contents,
                spec.that,
                spec.name,
                spec.blocking,
                batches,
                profiler and profiler.settings,
                self._reference_state(spec, evidence),
            ]
        )
        if self._stored is None:
            self._stored = self._read()
        known = self._used.get(name) or self._stored.get(name)
        self._used[name] = known or self._judged(spec, evidence, batches)
        return self._used[name]

    def _judged(self, spec: ExpectSpec, evidence: Evidence, batches: int) -> Judgement:
        rule = spec.rule
        target = self._target(spec, evidence)
        try:
            found = finding(rule, target, evidence)
        except ConfigError as error:
            return Judgement(False, None, str(error))
        has_rows = any(record.rows_out for record in evidence.records)
        passed = passes(rule, found, has_rows)
        examples = [] if passed or found.value is None else examples_of(rule, target, evidence, found)
        done = len(evidence.records)
        early = None
        if not passed and spec.blocking and done < batches and not isinstance(rule.value, Drift):
            sure = finding(rule, target, evidence, RISK / (done * (done + 1))).surely_breaks(rule)
            early = (done, batches) if sure else None
        message = message_of(rule, spec.name, target, found, examples, early)
        value = None if found.value is None else float(found.value)
        return Judgement(bool(passed), value, message, examples)

    def _evidence(self, records: Sequence[CommitRecord]) -> Evidence:
        columns = Columns(records[0].schema, self._own)
        wanted = {spec.rule.value: target_of(spec.rule.value, columns) for spec in self._step.expect}
        names = frozenset(target.column for target in wanted.values() if target is not None)
        return Evidence(self._work, self._step, records, names, self._known)

    @property
    def _own(self) -> Sequence[str]:
        return self._work.own_measures

    def _target(self, spec: ExpectSpec, evidence: Evidence) -> Target | None:
        return target_of(spec.rule.value, Columns(evidence.records[0].schema, self._own))

    def _reference_state(self, spec: ExpectSpec, evidence: Evidence) -> object:
        """Changes where what drift is measured against does."""
        value = spec.rule.value
        if not isinstance(value, Drift):
            return None
        if value.reference == "last_run":
            return _hash_of_file(evidence.folder.path / STATE / LAST_RUNS_FILE)
        if isinstance(value.reference, File):
            return _hash_of_file(self._work.pipeline.base_dir / value.reference.name)
        parents = map(self._work.folder_of, self._work.pipeline.parents(self._step.name))
        records = [[folder.record(each.batch) for each in evidence.records] for folder in parents]
        return [[each and each.content_hash for each in some] for some in records]

    @property
    def _file(self):
        return self._work.folder_of(self._step.name).path / STATE / JUDGEMENTS_FILE

    def _read(self) -> dict[str, Judgement]:
        """What is stored; nothing where the file is damaged, for it can be made again."""
        try:
            found = orjson.loads(self._file.read_bytes())
            return {
                name: Judgement(
                    each["passed"],
                    each["value"],
                    each["message"],
                    [ExampleRow(**row) for row in each["examples"]],
                )
                for name, each in found.items()
            }
        except (FileNotFoundError, ValueError, AttributeError, TypeError, KeyError):
            return {}
        except OSError as error:
            raise StorageError(f"{self._file} cannot be read: {error.strerror}; give permission") from error


def _hash_of_file(path) -> str | None:
    try:
        return xxhash.xxh3_128_hexdigest(path.read_bytes())
    except OSError:
        return None
