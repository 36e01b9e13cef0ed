"""How the rules of a step stand over its committed batches; at the end, or sooner where that is sure."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import orjson
import xxhash

from dataflow_assets.batch import Schema
from dataflow_assets.errors import ConfigError, StorageError
from dataflow_assets.expectations.bounds import RISK
from dataflow_assets.expectations.evidence import Evidence, contents_of
from dataflow_assets.expectations.examples import ExampleRow, examples_of
from dataflow_assets.expectations.findings import finding, passes
from dataflow_assets.expectations.messages import message_of
from dataflow_assets.expectations.references import last_run_contents, reference_path
from dataflow_assets.expectations.targets import Columns, Target, target_of
from dataflow_assets.fingerprints import hash_of
from dataflow_assets.io import atomic
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.layout import STATE
from dataflow_assets.pipeline.expectations import ExpectSpec
from dataflow_assets.pipeline.rule_grammar import Drift, File, Rule
from dataflow_assets.profiles.profile import Profile

if TYPE_CHECKING:
    from dataflow_assets.pipeline import Step
    from dataflow_assets.pipeline_work import PipelineWork

_Found = TypeVar("_Found")
JUDGEMENTS_FILE = "expectations.json"
_VERSION = 2
# Of many batches not every one is judged by itself: looking costs time in proportion to what was seen.
_LOOK_AT_EACH = 20
_MAX_KNOWN = 50_000
_judgements: dict[str, "Judgement"] = {}
_sure: dict[str, bool] = {}


@dataclass(frozen=True)
class Judgement:
    """How a rule stands: kept or not, its value, what is said of it, and rows that show why not.

    `is_sure` is false where batches are to come that may change it.
    """

    passed: bool
    value: float | None
    message: str
    is_sure: bool = True
    examples: list[ExampleRow] = field(default_factory=list)


def is_looked_at(batches: int) -> bool:
    """Whether rules are judged after so many batches: each of the first 20, then ten times a doubling."""
    return batches % 2 ** max(0, (batches - 1) // _LOOK_AT_EACH).bit_length() == 0


class StepRules:
    """The rules of one step, and what was read for them."""

    def __init__(self, work: "PipelineWork", step: "Step") -> None:
        self._work, self._step = work, step
        self._known: dict[tuple[str, frozenset[str]], Profile] = {}
        self._stored: dict[str, Judgement] | None = None
        self._used: dict[str, Judgement] = {}

    def results(self, records: Sequence[CommitRecord], batches: int) -> list[Judgement]:
        """How each rule stands over these of so many batches. Raises CorruptFile, StorageError."""
        if not records:
            return []
        evidence, seen = self._evidence(records), self._seen(records)
        return [self._stored_or_made(spec, evidence, seen, batches) for spec in self._step.expect]

    def broken_for_sure(
        self, records: Sequence[CommitRecord], batches: int
    ) -> list[tuple[ExpectSpec, Judgement]]:
        """The rules that are broken whatever the other batches hold, if those are like the ones seen."""
        if not records:
            return []
        evidence, seen = self._evidence(records), self._seen(records)
        return [
            (spec, self._judged(spec, evidence, batches))
            for spec in self._step.expect
            if _known(_sure, hash_of([seen, spec.that]), partial(self._is_broken_for_sure, spec, evidence))
        ]

    def _seen(self, records: Sequence[CommitRecord]) -> str:
        """Changes where the rows do, kept or not, or what is measured of them."""
        profiler = self._work.profiler(self._step.name)
        counts = [[record.rows_in, record.rejected, record.failed] for record in records]
        files = [{part: file.hash for part, file in record.files.items()} for record in records]
        settings = profiler and profiler.settings
        return hash_of([_VERSION, contents_of(records), counts, files, settings])

    def _is_broken_for_sure(self, spec: ExpectSpec, evidence: Evidence) -> bool:
        """All looks at a step together are wrong once in a thousand: each takes a part of the risk."""
        target = evidence.targets.get(spec.rule)
        if isinstance(spec.rule.value, Drift) or isinstance(target, ValueError):
            return False
        done = len(evidence.records)
        return finding(spec.rule, target, evidence, RISK / (done * (done + 1))).surely_breaks(spec.rule)

    def save(self) -> None:
        """Stores what was judged, in place of what was stored before. Raises StorageError."""
        if self._used != (self._stored if self._stored is not None else self._read()):
            atomic.make_folder(self._file.parent)
            found = {name: asdict(judgement) for name, judgement in self._used.items()}
            atomic.write_atomically(self._file, orjson.dumps(found, option=orjson.OPT_SORT_KEYS))
            self._stored = dict(self._used)

    def _stored_or_made(self, spec: ExpectSpec, evidence: Evidence, seen: str, batches: int) -> Judgement:
        """The judgement from the store where the same rule saw the same before."""
        name = hash_of(
            [seen, batches, spec.that, spec.name, spec.blocking, self._reference_state(spec, evidence)]
        )
        if self._stored is None:
            self._stored = self._read()
        stored = self._stored.get(name)
        self._used[name] = stored or _known(_judgements, name, partial(self._judged, spec, evidence, batches))
        return self._used[name]

    def _judged(self, spec: ExpectSpec, evidence: Evidence, batches: int) -> Judgement:
        rule, target = spec.rule, evidence.targets.get(spec.rule)
        try:
            if isinstance(target, ValueError):
                raise target
            found = finding(rule, target, evidence)
        except (ConfigError, ValueError) as error:
            return Judgement(False, None, f"expected {rule}: {error}")
        passed = passes(rule, found, any(record.rows_out for record in evidence.records))
        examples = [] if passed or found.value is None else examples_of(rule, target, evidence, found)
        done = len(evidence.records)
        so_far, is_sure = None, True
        if done < batches:
            is_sure = not passed and self._is_broken_for_sure(spec, evidence)
            how = "stopped early" if is_sure and spec.blocking else "so far,"
            so_far = f"{how} after {done:,} of {batches:,} batches"
        message = message_of(rule, spec.name, found, examples, so_far)
        value = None if found.value is None else float(found.value)
        return Judgement(bool(passed), value, message, is_sure, examples)

    def _evidence(self, records: Sequence[CommitRecord]) -> Evidence:
        """What these batches hold; a rule whose column they lack, as before a change, has a mistake."""
        schema: Schema = {name: kind for record in records for name, kind in record.schema.items()}
        columns = Columns(schema, self._work.own_measures)
        targets: dict[Rule, Target | ValueError | None] = {}
        for spec in self._step.expect:
            try:
                targets[spec.rule] = target_of(spec.rule.value, columns)
            except ValueError as error:
                targets[spec.rule] = error
        return Evidence(self._work, self._step, records, targets, schema, self._known)

    def _reference_state(self, spec: ExpectSpec, evidence: Evidence) -> object:
        """Changes where what drift is measured against does."""
        value = spec.rule.value
        if not isinstance(value, Drift):
            return None
        if value.reference == "last_run":
            measures = evidence.profiler.measures
            return last_run_contents(evidence.folder, contents_of(evidence.records), measures)
        if isinstance(value.reference, File):
            return _hash_of_file(reference_path(self._work.pipeline.base_dir, value.reference.name))
        parents = map(self._work.folder_of, self._work.pipeline.parents(self._step.name))
        records = [[folder.record(each.batch) for each in evidence.records] for folder in parents]
        return [[each and each.content_hash for each in some] for some in records]

    @property
    def _file(self) -> Path:
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
                    each["is_sure"],
                    [ExampleRow(**row) for row in each["examples"]],
                )
                for name, each in found.items()
            }
        except (FileNotFoundError, ValueError, AttributeError, TypeError, KeyError):
            return {}
        except OSError as error:
            raise StorageError(f"{self._file} cannot be read: {error.strerror}; give permission") from error


def _known(found: dict[str, _Found], name: str, make: Callable[[], _Found]) -> _Found:
    """What this process found out before under this name, else now."""
    if name not in found:
        if len(found) >= _MAX_KNOWN:
            found.clear()
        found[name] = make()
    return found[name]


def _hash_of_file(path: Path) -> str | None:
    try:
        return xxhash.xxh3_128_hexdigest(path.read_bytes())
    except OSError:
        return None
