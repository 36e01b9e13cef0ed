"""The resource `servings`: assets of your own ask through it, and it takes the place of a pipeline's."""

from pathlib import Path

import dagster as dg
import pytest

from dataflow_assets.assets import IO_MANAGER_KEY, pipeline_assets
from dataflow_assets.errors import ConfigError
from dataflow_assets.io.step_files import StepFilesIOManager
from dataflow_assets.mirror import register_batches
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.resources.servings import ServingsResource
from dataflow_assets_tests.walk import pipeline, rows

SCRIPT = "rules:\n  - {match: {contains: sheep}, text: Baa.}\n"
SCRIPTED = {"type": "scripted", "model": "fake"}


def script(folder: Path) -> dict[str, object]:
    path = folder / "script.yaml"
    path.write_text(SCRIPT)
    return {"default": {**SCRIPTED, "script": str(path)}}


def test_an_asset_of_your_own_asks_and_the_answer_is_kept(tmp_path: Path) -> None:
    @dg.asset
    def said(servings: ServingsResource) -> str:
        first = servings.ask("What does a sheep say?", max_tokens=20)
        again = servings.ask("What does a sheep say?", max_tokens=20)
        return f"{first.text} {again.cached}"

    resource = ServingsResource(named=script(tmp_path), ledger=str(tmp_path / "ledger.sqlite"))
    done = dg.materialize([said], resources={"servings": resource})
    assert done.output_for_node("said") == "Baa. True"


def test_a_deployments_serving_takes_the_place_of_the_pipelines(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "a sheep"}\n')
    step = {"name": "said", "type": "generate", "params": {"prompt": "{text}", "output_column": "answer"}}
    asks = pipeline(
        tmp_path, tmp_path / "in.jsonl", step, servings={"default": {"type": "openai", "model": "m"}}
    )
    work = PipelineWork(asks)
    with dg.DagsterInstance.ephemeral() as instance:
        dg.materialize(
            pipeline_assets(work),
            instance=instance,
            selection=[dg.AssetKey(["p", "source"])],
            resources=resources(tmp_path),
        )
        keys = work.known_manifest().batches
        register_batches(instance, "p", keys)
        dg.materialize(
            pipeline_assets(work),
            instance=instance,
            selection=[dg.AssetKey(["p", "said"])],
            partition_key=keys[0],
            resources=resources(tmp_path),
        )
    assert [row["answer"] for row in rows(work, "said")] == ["Baa."]


def resources(folder: Path) -> dict[str, object]:
    servings = ServingsResource(named=script(folder))
    return {IO_MANAGER_KEY: StepFilesIOManager(root=str(folder / "data")), "servings": servings}


def test_a_mistake_names_the_serving_and_the_field() -> None:
    resource = ServingsResource(named={"judge": {"type": "openai", "modle": "m"}})
    with pytest.raises(ConfigError, match=r"serving .judge., openai\.model"):
        resource.specs()


def test_keys_come_by_name_and_are_secret() -> None:
    named = {"judge": {"type": "openai", "model": "m"}}
    spec = ServingsResource(named=named, api_keys={"judge": "sk-1234567"}).specs()["judge"]
    assert "sk-1234567" not in repr(spec)
