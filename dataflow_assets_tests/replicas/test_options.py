"""The options of a step: what they become, and what is refused when the pipeline is loaded."""

from pathlib import Path

import pytest

from dataflow_assets.engines.replicas.request import START_TIMEOUT_S, ReplicaRequest
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets.pipeline import Step
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline.replicas import RUNTIME_ENV_KEYS, replica_request
from dataflow_assets.replicated import replicated


def loaded(folder: Path, step: str) -> Step:
    file = folder / "p.yaml"
    file.write_text(f"name: p\nsource: {{path: in.jsonl}}\nsteps:\n  - {{name: a, {step}}}\n")
    return load_pipeline(file).step("a")


def test_all_options_reach_the_request(tmp_path: Path) -> None:
    step = loaded(
        tmp_path,
        "type: lowercase, replicas: 4, num_gpus_per_replica: 0.25, num_cpus_per_replica: 1, chunk_rows: 32, "
        "resources: {a100: 1}, runtime_env: {pip: [x]}, start_timeout_s: 20",
    )
    assert replica_request(step) == ReplicaRequest(4, 0.25, 1, {"a100": 1}, {"pip": ["x"]}, 32, 20)


@pytest.mark.parametrize("option", ["replicas: 2", "num_gpus_per_replica: 0.5", "start_timeout_s: 5"])
def test_one_option_is_enough(tmp_path: Path, option: str) -> None:
    assert replica_request(loaded(tmp_path, f"type: lowercase, chunk_rows: auto, {option}")) is not None


def test_without_any_there_are_no_replicas(tmp_path: Path) -> None:
    assert replica_request(loaded(tmp_path, "type: lowercase, chunk_rows: 10")) is None
    assert ReplicaRequest().start_timeout_s == START_TIMEOUT_S


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            "type: drop_duplicates, params: {columns: [text]}, replicas: 4",
            "drop_duplicates decides over all rows",
        ),
        ("type: translate, params: {to: French}, replicas: 4", "raise the serving's `concurrency`"),
        ("type: lowercase, num_gpus_per_replica: 1.5", "more than one GPU must be a whole number"),
        ("type: lowercase, replicas: 2, workers: 2", "give one of them"),
        ("type: lowercase, replicas: 2, resources: {GPU: 1}", "say num_cpus_per_replica or num_gpus"),
        ("type: lowercase, replicas: 2, resources: {a100: 0}", "expected more than 0"),
        (
            "type: lowercase, runtime_env: {pipp: [x]}",
            "runtime_env has no 'pipp'; did you mean 'pip'?; expected conda, config",
        ),
        ("type: lowercase, replicas: 0", "greater than or equal to 1"),
        ("type: lowercase, chunk_rows: some", "auto"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, step: str, message: str) -> None:
    with pytest.raises(ConfigError, match=r"p\.yaml:4: step 1 'a'") as refused:
        loaded(tmp_path, step)
    assert message in str(refused.value)


def test_all_that_ray_takes_in_a_runtime_env_is_known() -> None:
    from ray.runtime_env import RuntimeEnv

    assert {key for key in RuntimeEnv.known_fields if not key.startswith("_")} <= set(RUNTIME_ENV_KEYS)


def test_keys_of_plugins_are_left_to_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_RUNTIME_ENV_PLUGINS", '[{"class": "ours.Plugin"}]')
    assert loaded(tmp_path, "type: lowercase, runtime_env: {ours: 1}").runtime_env == {"ours": 1}


def test_in_python_the_same_is_refused() -> None:
    with pytest.raises(ConfigError, match="decides over all rows"):
        replicated(build_operator("drop_duplicates", {"columns": ["text"]}), replicas=2)
    with pytest.raises(ConfigError, match="whole number"):
        replicated(build_operator("lowercase", {}), replicas=2, num_gpus_per_replica=1.5)
