"""DVC's `dvc.yaml`: a pipeline as one stage; `dvc repro`, `dvc push` and a git tag work on its outputs.

One stage a pipeline, not one a step: within it only the batches that are out of date are made again,
which DVC, that knows whole folders, cannot do; steps hand batches on without reading files again; and
one start of the program is paid, not one for each step. The outputs persist, so that this can go on
from what is there, and are the pipeline's folder with its commit records: after `dvc pull` in another
clone everything is up to date there too.
"""

import os
import re
import shlex
from collections.abc import Iterator
from glob import has_magic
from pathlib import Path

import yaml

from dataflow_assets.errors import ConfigError
from dataflow_assets.io.atomic import write_atomically
from dataflow_assets.io.objects.places import place_of, url_of
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline_work import DEFAULT_ROOT, PipelineWork
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets.versions.lock import LOCK_SUFFIX

DVC_FILE = "dvc.yaml"
_DECIDING = ("source", "batch_rows", "batch_bytes", "format", "prefix", "servings", "profile", "steps")
_FUNCTION = re.compile(r"([a-zA-Z_][\w.]*):[\w.]+")
Stage = dict[str, object]


def stage_of(work: PipelineWork, folder: Path, allow_failed: bool = False) -> Stage:
    """The stage of a pipeline for the `dvc.yaml` in `folder`, where its command will run.

    With `allow_failed` the stage is done although rows wait in `_failed`. Raises ConfigError where the
    pipeline is in no file, or its results are outside of `folder` or on an object store.
    """
    pipeline, folder = work.pipeline, folder.resolve()
    if pipeline.file is None:
        raise ConfigError(f"pipeline {pipeline.name!r} is in no file; DVC tracks a pipeline by its file")
    file = pipeline.file.resolve()
    if not file.is_relative_to(folder):
        raise ConfigError(
            f"{file} is outside of {folder}, where {DVC_FILE} is to be; copy the pipeline's file there"
        )
    results = work.layout.folder
    if url_of(results) is not None:
        raise ConfigError(
            f"the results are in {place_of(results)}, an object store, and DVC tracks what is in its "
            f"repository: give a `root` inside, e.g. --root {DEFAULT_ROOT}; `dvc push` then copies them to "
            "a store"
        )
    if not results.is_relative_to(folder):
        raise ConfigError(
            f"the results are in {results}, outside of {folder}; DVC tracks what is in its repository: give "
            f"a `root` inside, e.g. --root {DEFAULT_ROOT}"
        )
    run = f"dataflow-assets run {_shell(file, folder)} --root {_shell(work.layout.root, folder)}"
    lock = f"{pipeline.name}{LOCK_SUFFIX}"
    locking = f"dataflow-assets lock {_shell(file, folder)} --root {_shell(work.layout.root, folder)}"
    deps = sorted({_relative(path, folder) for path in _dependencies(pipeline)})
    return {
        "cmd": [f"{run} || test $? -eq 5" if allow_failed else run, f"{locking} --to {lock}"],
        **({"deps": deps} if deps else {}),
        "params": [{_relative(file, folder): [n for n in _DECIDING if n in pipeline.model_fields_set]}],
        "outs": [{_relative(results, folder): {"persist": True}}, {lock: {"cache": False, "persist": True}}],
        **({"always_changed": True} if _reads_elsewhere(pipeline) else {}),
    }


def write_stage(path: Path, name: str, stage: Stage) -> None:
    """Puts the stage into a `dvc.yaml`; all else in it stays as it is, comments too.

    Raises ConfigError where the file is not laid out as DVC does it, StorageError.
    """
    before = path.read_text("utf-8") if path.exists() else ""
    block = _block(name, stage)
    old = re.search(rf"^  {re.escape(name)}:[^\n]*\n(?:(?:    [^\n]*)?\n)*", before, re.MULTILINE)
    head = re.search(r"^stages:[ \t]*\n", before, re.MULTILINE)
    if old is not None:
        after = before[: old.start()] + block + before[old.end() :]
    elif head is not None:
        after = before[: head.end()] + block + before[head.end() :]
    else:
        after = f"{before.rstrip()}\nstages:\n{block}".lstrip()
    given = _loaded(path, before)
    is_ours = old is not None or head is not None or "stages" not in given
    if not is_ours or _loaded(path, after) != _with_stage(given, name, stage):
        raise ConfigError(
            f"{path} is not laid out as DVC writes it (two spaces, a stage a block), and is left as it is; "
            f"put this below its `stages:`\n{block}"
        )
    write_atomically(path, after.encode())


def _block(name: str, stage: Stage) -> str:
    text = yaml.safe_dump({name: stage}, sort_keys=False, allow_unicode=True, width=10_000)
    return "".join(f"  {line}\n" for line in text.splitlines())


def _loaded(path: Path, text: str) -> dict:
    try:
        found = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is no YAML: {error}".replace("\n", " ")) from error
    if not isinstance(found, dict) or not isinstance(found.get("stages") or {}, dict):
        raise ConfigError(f"{path} has no mapping of `stages`; expected a {DVC_FILE}")
    return found


def _with_stage(data: dict, name: str, stage: Stage) -> dict:
    return {**data, "stages": {**(data.get("stages") or {}), name: stage}}


def _dependencies(pipeline: Pipeline) -> Iterator[Path]:
    """The source's files and folders, and what the steps read beside the pipeline's file."""
    for text in _local_sources(pipeline):
        yield _fixed_part(pipeline.base_dir / Path(text).expanduser())
    for step in pipeline.steps:
        for text in (step.type, *_texts(step.params)):
            path = pipeline.base_dir / text if _may_be_path(text) else None
            if path is not None and path.is_file():
                yield path
            elif found := _FUNCTION.fullmatch(text):
                module = pipeline.base_dir / found[1].replace(".", "/")
                files = module.with_name(f"{module.name}.py"), module / "__init__.py"
                yield from (file for file in files if file.is_file())


def _may_be_path(text: str) -> bool:
    return 0 < len(text) < 1024 and not any(character in text for character in "\n\0")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _local_sources(pipeline: Pipeline) -> list[str]:
    return [text for text in _paths(pipeline) if not _is_elsewhere(text)]


def _reads_elsewhere(pipeline: Pipeline) -> bool:
    """Whether a source is none of files, which DVC cannot watch: the stage is then always run."""
    return len(_local_sources(pipeline)) < max(1, len(_paths(pipeline)))


def _paths(pipeline: Pipeline) -> list[str]:
    """The files, folders and addresses of a source that has such."""
    return pipeline.source.paths if isinstance(pipeline.source, SourceSpec) else []


def _is_elsewhere(text: str) -> bool:
    return re.match(r"[a-z][a-z0-9+.-]*:", text) is not None


def _fixed_part(path: Path) -> Path:
    """The path, or the folder above the first wildcard."""
    while has_magic(str(path)) and not path.exists():
        path = path.parent
    return path


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder)).as_posix()


def _shell(path: Path, folder: Path) -> str:
    return shlex.quote(_relative(path, folder))
