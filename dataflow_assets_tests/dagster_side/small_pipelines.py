"""A small pipeline with a dataset step, its source folder, and a Dagster instance, for tests."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import dagster as dg
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.loader import LoadingContextForTest
from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value

from dataflow_assets.assets import IO_MANAGER_KEY, pipeline_assets
from dataflow_assets.io.step_files import StepFilesIOManager
from dataflow_assets.mirror import asset_key
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.planning import RANGE_END, RANGE_START
from dataflow_assets.run import run_pipeline

STEPS = """\
  - {name: lower, type: lowercase, params: {column: text}}
  - {name: long-enough, type: filter_length, params: {column: text, min_chars: 2}}
  - {name: unique, type: drop_duplicates, params: {columns: [text]}}
  - {name: last, type: normalize_whitespace, params: {column: text}}
"""
NAMES = ["source", "lower", "long-enough", "unique_state", "unique", "last"]
WHOLE = ["source", "unique_state"]
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def write_pipeline(folder: Path, name: str = "small", steps: str = STEPS, head: str = "") -> Path:
    """A pipeline file that reads `folder/data`, two rows a batch."""
    folder.mkdir(exist_ok=True, parents=True)
    file = folder / f"{name}.yaml"
    (folder / "data").mkdir(exist_ok=True)
    file.write_text(f"name: {name}\nsource: {{path: data}}\nbatch_rows: 2\nworkers: 1\n{head}steps:\n{steps}")
    return file


def write_rows(folder: Path, name: str, texts: Sequence[str]) -> None:
    """A JSONL file of the source with one row for each text."""
    lines = [json.dumps({"text": text}) + "\n" for text in texts]
    (folder / "data" / f"{name}.jsonl").write_text("".join(lines))


def another_home(project: "SmallProject") -> dg.DagsterInstance:
    """A Dagster that knows nothing yet."""
    return dg.DagsterInstance.ephemeral(tempdir=str(project.folder))


def _tags(keys: tuple[str, str] | None) -> dict[str, str]:
    return {RANGE_START: keys[0], RANGE_END: keys[1]} if keys else {}


class SmallProject:
    """The pipeline `small` below `folder`; Dagster in memory unless another instance is given."""

    def __init__(
        self,
        folder: Path,
        steps: str = STEPS,
        format: str = "jsonl",
        batch_rows: int = 2,
        instance: dg.DagsterInstance | None = None,
    ) -> None:
        self.folder = folder
        self.instance = instance or dg.DagsterInstance.ephemeral(tempdir=str(folder))
        self.changes = {"root": str(folder / "root"), "format": format, "batch_rows": batch_rows}
        self.set_steps(steps)

    def set_steps(self, steps: str) -> None:
        """Changes the pipeline file; what is committed stays."""
        file = write_pipeline(self.folder, steps=steps)
        self.work = PipelineWork(load_pipeline(file).with_changes(**self.changes))
        self.assets = pipeline_assets(self.work)

    def write_rows(self, name: str, texts: Sequence[str]) -> None:
        """A file of the source."""
        write_rows(self.folder, name, texts)

    def run(self, select: Sequence[str] = ()) -> None:
        """What `dataflow-assets run` does."""
        run_pipeline(self.work, self.instance, select)

    def run_in_ui(
        self, *names: str, keys: tuple[str, str] | None = None, tags: Mapping[str, str] | None = None
    ) -> dg.ExecuteInProcessResult:
        """What a launch from the UI does: the named assets over a range of batches."""
        return self._materialize(
            self.assets, [self.key(name) for name in names], _tags(keys) | dict(tags or {})
        )

    def run_in_ui_with(
        self, foreign: dg.AssetsDefinition, names: Sequence[str] = (), partition: str | None = None
    ) -> dg.ExecuteInProcessResult:
        """A launch of an asset that is not the pipeline's, with `names` of it or alone."""
        selection = [self.key(name) for name in names if name in NAMES] + [foreign.key]
        keys = (partition, partition) if partition else None
        return self._materialize([*self.assets, foreign], selection, _tags(keys))

    def _materialize(
        self,
        assets: Sequence[dg.AssetsDefinition],
        selection: Sequence[dg.AssetKey],
        tags: dict[str, str],
    ) -> dg.ExecuteInProcessResult:
        return dg.materialize(
            assets,
            selection=selection,
            instance=self.instance,
            resources={IO_MANAGER_KEY: StepFilesIOManager(root=str(self.work.layout.root))},
            tags=tags,
            run_config=QUIET,
        )

    def key(self, name: str) -> dg.AssetKey:
        """The asset key of a step, of the source or of a state."""
        return asset_key(self.work.pipeline, name)

    @property
    def batches(self) -> list[str]:
        """The partitions that Dagster knows, in its order."""
        return list(self.instance.get_dynamic_partitions("small"))

    def materialized(self, name: str) -> set[str]:
        """The batches of a step that Dagster calls materialized."""
        return set(self.instance.get_materialized_partitions(self.key(name)))

    def failed(self, name: str) -> set[str]:
        """The batches of a step that Dagster calls failed."""
        partitions = dg.DynamicPartitionsDefinition(name="small")
        status = get_and_update_asset_status_cache_value(self.instance, self.key(name), partitions)
        assert status is not None
        with partition_loading_context(dynamic_partitions_store=self.instance):
            return set(status.deserialize_failed_partition_subsets(partitions).get_partition_keys())

    def committed(self, name: str) -> set[str]:
        """The batches of a step that exist."""
        folder, manifest = self.work.folder_of(name), self.work.manifest()
        batches = manifest.batches if manifest else []
        return {batch for batch in batches if folder.record(batch) is not None}

    def committed_at(self) -> list[int]:
        """When each step was last committed to, in order."""
        numbers = range(1, len(self.work.pipeline.steps) + 1)
        return [self.work.layout.step(number).commits.stat().st_mtime_ns for number in numbers]

    def newest(self, name: str, batch: str | None = None) -> dg.AssetMaterialization:
        """The newest materialization of an asset or of one of its batches."""
        wanted = dg.AssetRecordsFilter(self.key(name), asset_partitions=[batch] if batch else None)
        return self.instance.fetch_materializations(wanted, limit=1).records[0].asset_materialization

    def metadata(self, name: str, batch: str | None = None) -> dict[str, object]:
        """Its metadata as plain values."""
        return {key: value.value for key, value in self.newest(name, batch).metadata.items()}

    def event_count(self, name: str) -> int:
        """How many materializations of an asset there are, over all batches."""
        return self.event_count_of(self.key(name))

    def event_count_of(self, key: dg.AssetKey) -> int:
        """The same for an asset of somebody else."""
        return len(self.instance.fetch_materializations(key, limit=1000).records)

    def stale(self) -> dict[str, str]:
        """Every `asset` or `asset/batch` that Dagster does not call fresh, with the status and why."""
        resources = {IO_MANAGER_KEY: StepFilesIOManager(root=str(self.work.layout.root))}
        graph = dg.Definitions(assets=self.assets, resources=resources).resolve_asset_graph()
        resolver = CachingStaleStatusResolver(self.instance, graph, LoadingContextForTest(self.instance))
        found = {}
        for key in graph.toposorted_asset_keys:
            for batch in self.batches if graph.get(key).is_partitioned else [None]:
                status = resolver.get_status(key, batch).name
                reasons = sorted({cause.reason for cause in resolver.get_stale_causes(key, batch)})
                name = f"{key.path[-1]}/{batch}" if batch else key.path[-1]
                if status != "FRESH":
                    found[name] = f"{status}: {', '.join(reasons)}" if reasons else status
        return found
