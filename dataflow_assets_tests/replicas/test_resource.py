"""The resource `ray`: which one, with which settings, and what is said where Ray is not installed."""

import importlib.util
from pathlib import Path

import dagster as dg
import pytest

from dataflow_assets.definitions import definitions_of
from dataflow_assets.engines.replicas import ray_connection
from dataflow_assets.engines.replicas.ray_connection import RaySettings
from dataflow_assets.errors import ConfigError
from dataflow_assets.pipeline import Pipeline, Step
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.resources.ray import RAY_KEY, ray_resources, settings_of
from dataflow_assets.resources.ray_cluster import RayCluster
from dataflow_assets.sources.spec import SourceSpec


def made_pipeline(folder: Path, **options: object) -> Pipeline:
    (folder / "in.jsonl").write_text('{"text": "A"}\n')
    step = Step(name="lower", type="lowercase", **options)
    return Pipeline(
        name="p", source=SourceSpec(path=str(folder / "in.jsonl")), root=str(folder), steps=[step]
    )


def test_a_pipeline_without_replicas_needs_no_ray(tmp_path: Path) -> None:
    assert ray_resources([made_pipeline(tmp_path)]) == {}
    assert RAY_KEY in ray_resources([made_pipeline(tmp_path, replicas=2)])


def test_without_the_package_definitions_load_and_a_run_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None)
    pipeline = made_pipeline(tmp_path, replicas=2)
    dg.Definitions.validate_loadable(definitions_of([pipeline]))
    with pytest.raises(ConfigError, match=r"pip install 'dataflow_assets\[ray\]'"):
        PipelineWork(pipeline).check_before_run()


def test_without_dagster_ray_alone_the_resource_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "dagster_ray" else found(name, *rest)
    )
    resource = ray_resources([made_pipeline(tmp_path, replicas=2)])[RAY_KEY]
    with pytest.raises(ConfigError, match=r"needs dagster_ray.*pip install 'dataflow_assets\[ray\]'"):
        resource(dg.build_init_resource_context())  # pyright: ignore[reportCallIssue]


def test_the_address_is_given_or_of_the_environment_or_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert RayCluster().settings().resolved_address == "local"
    monkeypatch.setenv("RAY_ADDRESS", "ray://head:10001")
    assert RayCluster().host == "head"
    assert RayCluster(address="auto").settings().resolved_address == "auto"


def test_what_starts_a_local_cluster_is_not_said_to_one_that_is_there() -> None:
    local = RayCluster(address="local", num_gpus=4, env_vars={"A": "1"}).settings()
    assert (local.init["num_gpus"], local.init["include_dashboard"]) == (4, False)
    assert local.init["runtime_env"] == {"env_vars": {"A": "1"}}
    assert RayCluster(address="auto", num_gpus=4, auth_token="t").settings() == RaySettings("auto", {}, "t")
    assert "secret" not in repr(RaySettings(token="secret"))


def test_a_resource_of_dagster_ray_has_connected_by_itself() -> None:
    assert settings_of(object()) == RaySettings(is_there=True)


def test_a_cluster_that_is_not_there_or_not_the_one_of_this_process_is_told() -> None:
    with ray_connection.held(), pytest.raises(ConfigError, match="cannot be"):
        ray_connection.connect(RaySettings("127.0.0.1:1"))


def test_settings_that_cannot_be_used_are_told_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "token")  # so that it is put back
    with pytest.raises(ConfigError, match="cannot be reached: ValueError"):
        ray_connection._Owner(RaySettings("local", token="a\0b")).connect()
