"""A pipeline bound to its files: its source, steps and states as work that can be committed."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from dataflow_assets.batch import Schema
from dataflow_assets.engines.replicas.ray_connection import RaySettings, require_ray
from dataflow_assets.engines.where_it_pays import Payoff
from dataflow_assets.engines.whole_batches import MadeHere
from dataflow_assets.engines.worker_pool import WorkerPools
from dataflow_assets.errors import ConfigError, MissingBatch, SourceError
from dataflow_assets.expectations.needs import check_references, pairs_of
from dataflow_assets.failed_queue.edits import StepEdits
from dataflow_assets.failed_queue.homes import move_edits
from dataflow_assets.fingerprints import hash_of, operator_fingerprint
from dataflow_assets.io.batch_stream import Ahead, BatchStream
from dataflow_assets.io.layout import PipelineLayout
from dataflow_assets.io.objects.places import is_copy, local_folder, place_of
from dataflow_assets.io.step_folder import StepFolder
from dataflow_assets.operators.llm.operator import DEFAULT_SERVING, LLMOperator
from dataflow_assets.operators.operator import DatasetOperator, Operator
from dataflow_assets.operators.splitting.tokenizer import find_tokenizer
from dataflow_assets.pipeline import Pipeline, Step
from dataflow_assets.pipeline.columns import check_columns, join_plan
from dataflow_assets.pipeline.replicas import replica_request
from dataflow_assets.plugins.known import wanted_plugins
from dataflow_assets.profiles.profiler import Profiler, StepBefore
from dataflow_assets.profiles.sampling import rates_for
from dataflow_assets.serving.asking import Asking, Where
from dataflow_assets.serving.choice import environment_is_set
from dataflow_assets.serving.prices import known_price
from dataflow_assets.serving.spec import ServingSpec
from dataflow_assets.sources.current import known_before, read_manifest, source_is_current
from dataflow_assets.sources.cutting import final_schema
from dataflow_assets.sources.ingest import SourceIngest
from dataflow_assets.sources.manifest import Manifest
from dataflow_assets.sources.opening import find_pieces
from dataflow_assets.sources.piece import Found
from dataflow_assets.sources.records import peek_schema
from dataflow_assets.state_work import StateWork
from dataflow_assets.step_input import StepInput
from dataflow_assets.step_work import StepWork, holds_gil, maker_for

DEFAULT_ROOT = "dataflow_data"
ROOT_VARIABLE = "DATAFLOW_ROOT"
SOURCE = "source"
LEDGER_FILE = "ledger.sqlite"
_ROWS_OF_ALL = 10_000


def state_name(step: str) -> str:
    """The name of a dataset-scope step's state, as assets and commit records have it."""
    return f"{step}_state"


def root_of(pipeline: Pipeline) -> Path:
    """Where the pipeline's files go: its own root, else DATAFLOW_ROOT, else `dataflow_data` here.

    Of a URL, the folder on this disk that is a copy of it; raises ConfigError for one that cannot be a root.
    """
    root = pipeline.resolved_root or os.environ.get(ROOT_VARIABLE) or DEFAULT_ROOT
    return local_folder(root) if "://" in root else Path(root).resolve()


@dataclass(frozen=True)
class PipelineWork:
    """One pipeline and its folders. With `reuse` off, what is committed is made again.

    `spends_as` is the `identity` of the work whose budget pays for the calls, where it is another.
    `ray` says where steps with replicas run. `apart`: see `StepWork`.
    """

    pipeline: Pipeline
    reuse: bool = True
    ahead: Ahead = field(default_factory=Ahead)
    spends_as: str | None = None
    ray: RaySettings = field(default_factory=RaySettings)
    pools: WorkerPools = field(default_factory=WorkerPools)
    apart: bool = False

    @cached_property
    def layout(self) -> PipelineLayout:
        """The pipeline's folders. Raises ConfigError where a link leads out of the root."""
        pipeline = self.pipeline
        return PipelineLayout(
            root_of(pipeline),
            pipeline.name,
            pipeline.prefix,
            pipeline.format,
            pipeline.batch_rows is None,
            pipeline.allow_pickle,
        )

    def manifest(self) -> Manifest | None:
        """What was read last, or None."""
        return read_manifest(self.pipeline, self.layout)

    def known_manifest(self) -> Manifest:
        """What was read last. Raises MissingBatch where nothing was."""
        manifest = self.manifest()
        if manifest is None:
            raise MissingBatch(
                f"the source of pipeline {self.pipeline.name!r} was not read into "
                f"{place_of(self.layout.folder)}; materialize its asset {SOURCE!r} first"
            )
        return manifest

    def source_is_current(self, any_format: bool = False) -> bool:
        """Whether step 0 holds what the source holds now, in its format or any. Raises SourceError."""
        return self.reuse and source_is_current(self.pipeline, self.layout, any_format)

    def peeked_schema(self) -> Schema:
        """The columns of the source's first rows, before anything is read. Raises SourceError."""
        return final_schema(peek_schema(self.source_pieces().pieces, self.pipeline.source))

    def source_pieces(self) -> Found:
        """What the source is made of now. Raises SourceError, ConfigError."""
        known = known_before(self.pipeline, self.layout)
        return find_pieces(self.pipeline.source, self.pipeline.base_dir, known)

    def check_before_run(self) -> None:
        """Raises what would stop a run before it costs anything: SourceError, all mistakes as ConfigError."""
        wanted_plugins(self.pipeline)
        problems: list[str] = []
        for check in (self._check_operators, self._check_ray, self._check_references, self._check_new_source):
            try:
                check()
            except ConfigError as error:
                problems += error.problems
            except SourceError as error:
                if not problems:
                    raise
                problems.append(str(error))
        if problems:
            raise ConfigError(problems)

    def _check_operators(self) -> None:
        problems: list[str] = []
        for step in self.pipeline.steps:
            try:
                self.pipeline.operator(step).check_ready()
                operator_fingerprint(self.pipeline.operator(step))
            except ConfigError as error:
                problems.append(f"step {step.name!r}: {error}")
        if problems:
            raise ConfigError(problems)

    def _check_ray(self) -> None:
        if any(replica_request(step) for step in self.pipeline.steps):
            require_ray()

    def _check_references(self) -> None:
        check_references(self.pipeline)

    def _check_new_source(self) -> None:
        if not self.source_is_current():
            self.check_source_columns()

    def check_source_columns(self) -> None:
        """Checks the columns of the source's first rows; where none can be read, reading all says why."""
        schema = self.peeked_schema()
        if len(schema) > 1:
            self.check_columns(schema)

    def check_columns(self, schema: Schema) -> None:
        """Raises ConfigError with every column that a step reads and nobody brings."""
        check_columns(self.pipeline, schema)

    def asking_there(self, servings: Mapping[str, ServingSpec]) -> "PipelineWork":
        """The same work with these servings in place of the pipeline's own of the same names."""
        return replace(self, pipeline=self.pipeline.with_changes(servings=servings)) if servings else self

    def ingest(self, finish: Callable[[Manifest], None]) -> SourceIngest:
        """The source as work; `finish` is told the manifest at the end."""

        def finished(manifest: Manifest) -> None:
            self.check_columns(manifest.schema)
            self.remove_batches_but(set(manifest.batches))
            finish(manifest)

        profiler = self.profiler(SOURCE)
        return SourceIngest(self.pipeline, self.layout, finished, self.reuse, profiler and profiler.look)

    def remove_batches_but(self, keys: set[str]) -> None:
        """Removes batches that the source no longer has from every step; edits go where their rows are."""
        for number in range(len(self.pipeline.steps) + 1):
            folder = self.layout.step(number)
            folder.remove_all_but(keys)
            move_edits(StepEdits.beside(folder), self.layout.step(0), keys)

    def folder_of(self, name: str) -> StepFolder:
        """The folder of a step or of the source."""
        return self.layout.step(0 if name == SOURCE else self.pipeline.step_number(name))

    def step(self, step: Step) -> StepWork:
        """A step as work. Raises MissingBatch where the source was not read yet."""
        number = self.pipeline.step_number(step.name)
        parents = {name: self.folder_of(name) for name in self.pipeline.parents(step)}
        columns = self._join_columns(step) if len(parents) > 1 else None
        return StepWork(
            step.name,
            self.pipeline.operator(step),
            StepInput(parents, columns),
            self.layout.step(number),
            self.layout.summaries(number),
            self.layout.verdicts(number),
            step.workers or self.pipeline.workers,
            None if step.chunk_rows == "auto" else step.chunk_rows,
            self.pipeline.batch_rows or _ROWS_OF_ALL,
            self._asking(step),
            replica_request(step),
            self.ray,
            self.pools,
            self.profiler(step.name),
            self.apart,
        )

    def profiler(self, name: str) -> Profiler | None:
        """What makes the profiles of a step's batches, or the source's; None where they are off."""
        found = self._profiler_alone(name)
        parents = [] if name == SOURCE else self.pipeline.parents(self.pipeline.step(name))
        before = self._profiler_alone(parents[0]) if parents else None
        if found is None or before is None:
            return found
        return replace(found, before=StepBefore(self.folder_of(parents[0]), before.settings))

    def _profiler_alone(self, name: str) -> Profiler | None:
        spec = self.pipeline.profile
        if spec is False:
            return None
        tokenizer = find_tokenizer(spec.tokenizer, self.pipeline.base_dir) if spec.tokenizer else None
        rules = [] if name == SOURCE else self.pipeline.step(name).expect
        rates = rates_for(self._source_bytes, spec.share)
        return Profiler(rates, tokenizer, spec.measures, pairs_of(rules))

    def has_profile(self, asset: str) -> bool:
        """Whether the asset has profiles: the source and steps do, states of steps do not."""
        return self.pipeline.profile is not False and asset in {
            SOURCE,
            *(s.name for s in self.pipeline.steps),
        }

    @property
    def own_measures(self) -> list[str]:
        """The names of the pipeline's own measures."""
        return [] if self.pipeline.profile is False else list(self.pipeline.profile.measures)

    @cached_property
    def _source_bytes(self) -> int:
        """The size of the source's files as they were read, else as they are."""
        manifest = self.manifest()
        if manifest is not None:
            return sum(state.size for file in manifest.files for state in file.states.values())
        return sum(piece.size() for piece in self.source_pieces().pieces)

    def _asking(self, step: Step) -> Asking | None:
        spec = self.pipeline.serving(step)
        if spec is None:
            return None
        where = Where(self.identity, step.name)
        rows = self.pipeline.batch_rows or _ROWS_OF_ALL
        return Asking(spec, self.ledger, where, rows, step.budget, self.pipeline.budget)

    @property
    def identity(self) -> str:
        """The pipeline's name and the hash of its folder: what spend and pauses are kept under."""
        return self.spends_as or f"{self.pipeline.name}@{hash_of(place_of(self.layout.folder))[:12]}"

    @property
    def ledger(self) -> str:
        """File or URL of the answers: the pipeline's own, else `ledger.sqlite` in the root.

        With a root on an object store, where no database can be, it is in the root that would hold without.
        """
        named = self.pipeline.ledger
        if named is not None and "://" in named:
            return named
        if named is not None:
            return str(self.pipeline.base_dir / named)
        root = self.layout.root
        return str((Path(DEFAULT_ROOT).resolve() if is_copy(f"{root}/") else root) / LEDGER_FILE)

    def start_workers(self) -> None:
        """Starts the processes that steps with given `workers` will use, while other things are done."""
        needed: dict[int, list[Operator]] = {}
        for step in self.pipeline.steps:
            operator, workers = self.pipeline.operator(step), step.workers or self.pipeline.workers or 1
            asks_elsewhere = isinstance(operator, LLMOperator) or replica_request(step) is not None
            if workers > 1 and holds_gil(operator) and not asks_elsewhere:
                needed.setdefault(workers, []).append(operator)
        for workers, operators in needed.items():
            self.pools.of(workers).start(operators)

    def stream(self, step: Step, keys: Sequence[str], selected: Collection[str] = ()) -> BatchStream:
        """The batches of a step, and of the selected steps whose rows come from it alone.

        Those follow at once, batch by batch, from memory; so the first batches are through the
        pipeline early, and a file is not read again by each step. A step that asks a model or has
        replicas follows nobody: it has many batches in hand. Nobody follows a step with a blocking
        check, for it is not known whether it passes; one that is checked batch by batch follows nobody
        either.
        """
        work = self.step(step)
        later = self._following(step, selected)
        works = [work, *(each.work if isinstance(each, StateWork) else each for each in later)]
        payoff = Payoff(len(keys), sure=any(each.workers for each in works))
        hold_bytes = None if step.may_stop_early else self.hold_bytes
        followers = [
            replace(each.summaries(keys), hold_bytes=hold_bytes)
            if isinstance(each, StateWork)
            else each.stream(keys, payoff, self.reuse, ahead=self.ahead, hold_bytes=hold_bytes)
            for each in later
        ]
        maker = maker_for(works, len(keys), payoff) if hold_bytes is None else MadeHere(payoff)
        return work.stream(keys, payoff, self.reuse, followers, self.ahead, maker, hold_bytes)

    @property
    def hold_bytes(self) -> int | None:
        """How much of a step's batches is held in memory; None where each is committed at once."""
        return self.pipeline.lazy_bytes if self.pipeline.write == "lazy" else None

    def _following(self, step: Step, selected: Collection[str]) -> "list[StepWork | StateWork]":
        """The selected steps, and states, that are made at once from the rows of the step, in order."""
        found: list[StepWork | StateWork] = []
        led = set() if step.is_gate else {step.name}
        for later in self._after(step):
            if not set(self.pipeline.parents(later.name)) <= led:
                continue
            state = self.state(later)
            if state is not None and state_name(later.name) in selected:
                found.append(state)
            elif state is None and later.name in selected and self._may_follow(later):
                led |= set() if later.is_gate else {later.name}
                found.append(self.step(later))
        return found

    def _may_follow(self, step: Step) -> bool:
        has_many_in_hand = self.pipeline.serving(step) is not None or replica_request(step) is not None
        return not has_many_in_hand and not step.may_stop_early

    def _after(self, step: Step) -> list[Step]:
        steps = self.pipeline.ordered_steps
        return steps[self.pipeline.step_number(step.name) :]

    def _join_columns(self, step: Step) -> dict[str, str]:
        return join_plan(self.pipeline, self.known_manifest().schema)[step.name]

    def state(self, step: Step) -> StateWork | None:
        """The state of a dataset-scope step as work; None for a row-scope step."""
        if not isinstance(self.pipeline.operator(step), DatasetOperator):
            return None
        return StateWork(self.step(step), self.known_manifest().batches, self.reuse, self.ahead)


def scripted_by_default(pipeline: Pipeline) -> bool:
    """Whether a step is answered by the fake because nobody said which serving to ask."""
    if DEFAULT_SERVING in pipeline.servings:
        return False
    asked = (pipeline.operator(step) for step in pipeline.steps)
    names = {operator.serving for operator in asked if isinstance(operator, LLMOperator)}
    return DEFAULT_SERVING in names and not environment_is_set()


def unpriced_models(pipeline: Pipeline) -> list[str]:
    """The models that steps ask and whose price nobody gave."""
    specs = filter(None, (pipeline.serving(step) for step in pipeline.steps))
    return sorted({spec.model for spec in specs if known_price(spec) is None})
