"""The lock of a run: all that decided its rows, and what they were, so that it can be repeated and compared.

Nothing of it belongs to one machine or one moment: no time, run id, host, absolute path or secret. Two
runs that made the same rows in the same way have equal locks.
"""

import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets.fingerprints import hash_of, operator_fingerprint
from dataflow_assets.io.atomic import write_atomically
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.optional_packages import version_of
from dataflow_assets.pipeline import Pipeline, Step
from dataflow_assets.pipeline.problems import printable, shortened
from dataflow_assets.pipeline_work import SOURCE, PipelineWork
from dataflow_assets.planning import is_up_to_date
from dataflow_assets.sources.current import settings_hash
from dataflow_assets.status import summed
from dataflow_assets.task_state import resume_argument
from dataflow_assets.versions.inputs import inputs_now

LOCK_VERSION = 1
LOCK_SUFFIX = ".lock.json"
_PACKAGES = ("dataflow_assets", "ftfy", "numpy", "orjson", "polars", "pyarrow", "regex", "xxhash")
_PASSWORD = re.compile(r"(://[^/@:\s]*):[^/@\s]+@")
_MODEL = ConfigDict(extra="forbid", strict=True, frozen=True)


class Rows(BaseModel):
    """What a step, or the source, made: counts over all batches, and the content hash of each batch.

    `fingerprint` is the hash of the batches' fingerprints: of operators, parameters and inputs.
    """

    model_config = _MODEL

    rows_in: int = 0
    rows_out: int = 0
    rejected: dict[str, int] = {}
    failed: dict[str, int] = {}
    fingerprint: str = ""
    batches: dict[str, str] = {}


class LockedStep(BaseModel):
    """One step: its operator with everything that decides what it does, and the rows that came out.

    `code` is the hash of name, version, parameters and identity. `params` has the texts of prompts,
    `identity` what else decides: the model, the source of a function, the content of a word list.
    """

    model_config = _MODEL

    name: str
    type: str
    version: str
    code: str
    parents: list[str]
    params: dict[str, object]
    identity: dict[str, object]
    rows: Rows = Rows()


class RunLock(BaseModel):
    """How a pipeline's rows came about.

    `settings` are those of the source and of its batches, `inputs` its files with the hash of each.
    """

    model_config = _MODEL

    pipeline: str
    versions: dict[str, str]
    settings: dict[str, object]
    inputs: dict[str, str]
    source: Rows = Rows()
    steps: list[LockedStep] = Field(min_length=1)

    def to_bytes(self) -> bytes:
        """The lock as JSON, keys in order, so that version control shows what changed."""
        body = {"lock_version": LOCK_VERSION, **self.model_dump(mode="json")}
        return orjson.dumps(body, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def write(self, path: Path) -> None:
        """Stores the lock whole or not at all. Raises StorageError."""
        write_atomically(path, self.to_bytes())

    @property
    def plan(self) -> "RunLock":
        """The lock without what was made: what is known before a run."""
        steps = [step.model_copy(update={"rows": Rows()}) for step in self.steps]
        return self.model_copy(update={"source": Rows(), "steps": steps})


def is_lock(path: Path) -> bool:
    """Whether it is, or by its name is to be, a lock file: JSON with a `lock_version`."""
    if path.name.endswith(LOCK_SUFFIX):
        return True
    try:
        body = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(body, dict) and "lock_version" in body


def read_lock(path: Path) -> RunLock:
    """The lock in this file. Raises ConfigError where there is none that this version can read."""
    try:
        body = orjson.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"the lock file {path} cannot be read: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"{path} is no lock file: {error}; `dataflow-assets lock` writes one") from error
    version = body.pop("lock_version", None) if isinstance(body, dict) else None
    if version != LOCK_VERSION:
        found = "no lock_version" if version is None else f"lock_version {shortened(repr(version), 40)}"
        raise ConfigError(f"{path} has {found}; expected {LOCK_VERSION}, which this version's `lock` writes")
    try:
        return RunLock.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ConfigError(
            f"{path} is no whole lock file: {printable(shortened(place, 200))}: {first['msg']}; write it "
            "anew with `dataflow-assets lock`"
        ) from error


def lock_of(work: PipelineWork) -> RunLock:
    """The lock of the run that made what is there. Raises RunError where not all is up to date."""
    if not is_finished(work):
        raise RunError(
            f"pipeline {work.pipeline.name!r} is not up to date with its source, parameters and code, so "
            f"there is no run to lock; run `dataflow-assets run {resume_argument(work.pipeline)}` first"
        )
    return with_rows(work, plan_now(work))


def is_finished(work: PipelineWork) -> bool:
    """Whether every batch of every step is as source, parameters and code want it now, in any format."""
    manifest = work.manifest()
    return (
        manifest is not None
        and work.source_is_current(any_format=True)
        and is_up_to_date(work, manifest.batches, any_format=True)
    )


def plan_now(work: PipelineWork) -> RunLock:
    """What a run would work with now: inputs, settings, versions and operators. Raises SourceError."""
    pipeline = work.pipeline
    return RunLock(
        pipeline=pipeline.name,
        versions=_versions(pipeline),
        settings=_settings(pipeline),
        inputs=inputs_now(work),
        steps=[_planned(pipeline, step) for step in pipeline.ordered_steps],
    )


def with_rows(work: PipelineWork, plan: RunLock) -> RunLock:
    """The plan with what is committed of its steps, whether or not that is of this plan."""
    manifest = work.manifest()
    keys = manifest.batches if manifest else []

    def rows_of(name: str) -> Rows:
        folder = work.folder_of(name)
        return _rows([record for key in keys if (record := folder.record(key)) is not None])

    rejected = summed(file.rejected for file in manifest.files) if manifest else {}
    source = rows_of(SOURCE).model_copy(update={"rejected": rejected})
    steps = [step.model_copy(update={"rows": rows_of(step.name)}) for step in plan.steps]
    return plan.model_copy(update={"source": source, "steps": steps})


def _rows(records: list[CommitRecord]) -> Rows:
    return Rows(
        rows_in=sum(record.rows_in for record in records),
        rows_out=sum(record.rows_out for record in records),
        rejected=summed(record.rejected for record in records),
        failed=summed(record.failed for record in records),
        fingerprint=hash_of([record.fingerprint for record in records]),
        batches={record.batch: record.content_hash for record in records},
    )


def _planned(pipeline: Pipeline, step: Step) -> LockedStep:
    operator = pipeline.operator(step)
    return LockedStep(
        name=step.name,
        type=step.type,
        version=operator.version,
        code=operator_fingerprint(operator),
        parents=pipeline.parents(step),
        params=_shown(pipeline, operator.fingerprint_of_params()),
        identity=_shown(pipeline, operator.identity()),
    )


def _settings(pipeline: Pipeline) -> dict[str, object]:
    source, given = pipeline.source.settings(), pipeline.source.shown()
    return {
        "source": _shown(pipeline, {name: source[name] for name in source if name in given}),
        "batch_rows": pipeline.batch_rows,
        "batch_bytes": pipeline.batch_bytes,
        "format": pipeline.format,
        "hash": settings_hash(pipeline),
    }


def _shown(pipeline: Pipeline, values: Mapping[str, object]) -> dict[str, object]:
    """Plain values without secrets, values of the environment, and paths of this machine."""
    plain = orjson.loads(orjson.dumps(pipeline.redacted_values(values)))
    return {name: _portable(value, pipeline.base_dir) for name, value in plain.items()}


def _portable(value: object, base_dir: Path) -> object:
    """The value with paths as every machine has them, and URLs without passwords."""
    if isinstance(value, str) and os.path.isabs(value) and "\n" not in value:
        path = Path(value)
        return str(path.relative_to(base_dir)) if path.is_relative_to(base_dir) else f"…/{path.name}"
    if isinstance(value, str):
        return _PASSWORD.sub(r"\1:***@", value)
    if isinstance(value, dict):
        return {name: _portable(inner, base_dir) for name, inner in value.items()}
    return [_portable(inner, base_dir) for inner in value] if isinstance(value, list) else value


def _versions(pipeline: Pipeline) -> dict[str, str]:
    """Python, the packages that every pipeline uses, and those that its operators need."""
    needed = {name for step in pipeline.steps for name in pipeline.operator(step).needed_packages()}
    found = {name: version_of(name) for name in sorted({*_PACKAGES, *needed})}
    return {
        "python": platform.python_version(),
        **{name: version for name, version in found.items() if version is not None},
    }
