"""Runs assets of a plain Dagster user with the IO manager, in a Dagster instance in memory."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from dataflow_assets.io.step_files import StepFilesIOManager
from dataflow_assets.planning import RANGE_END, RANGE_START

ONE_RUN = dg.BackfillPolicy.single_run()


class UserProject:
    """A project of one IO manager and its root; each `run` is a run of these assets."""

    def __init__(self, root: Path, format: str = "jsonl") -> None:
        self.root = root
        self.instance = dg.DagsterInstance.ephemeral(tempdir=str(root.parent))
        self._manager = StepFilesIOManager(root=str(root), format=format)

    def run(
        self,
        *assets: dg.AssetsDefinition,
        partition: str | None = None,
        keys: tuple[str, str] | None = None,
        selection: Sequence[dg.AssetsDefinition] | None = None,
    ) -> dg.ExecuteInProcessResult:
        """One run over no partition, one, or the range of `keys`; raises what the run raises."""
        return dg.materialize(
            list(assets),
            instance=self.instance,
            resources={"io_manager": self._manager},
            partition_key=partition,
            tags={RANGE_START: keys[0], RANGE_END: keys[1]} if keys else None,
            selection=selection,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )

    def files(self) -> list[str]:
        """Every file below the root that holds data or a record, relative to it."""
        files = (path for path in self.root.rglob("[!.]*") if path.is_file())
        return sorted(os.path.relpath(path, self.root) for path in files)

    def lines(self, name: str) -> list[object]:
        """The rows of a JSONL file."""
        return [json.loads(line) for line in (self.root / name).read_text("utf-8").splitlines()]

    def metadata(self, asset: dg.AssetsDefinition, partition: str | None = None) -> dict[str, object]:
        """The metadata of the newest materialization of a partition, as plain values."""
        wanted = dg.AssetRecordsFilter(asset.key, asset_partitions=[partition] if partition else None)
        newest = self.instance.fetch_materializations(wanted, limit=1).records[0]
        return {name: value.value for name, value in newest.asset_materialization.metadata.items()}
