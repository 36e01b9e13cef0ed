"""A real small model behind `transformers serve`: `text2qa` and a structured step, end to end."""

import json
import os
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from dataflow_assets_tests.crash.command import environment, finish, start
from dataflow_assets_tests.serving.smollm2 import ModelServer

LIMIT_S = 900
# What a model of 135M parameters does to a schema and to a limit of a few tokens.
GATES = {"gate:no_refusal", "gate:no_prompt_leak", "gate:not_a_copy"}
OF_A_SMALL_MODEL = {"json_parse", "schema_invalid", "truncated", "empty", *GATES}


def write_pipeline(folder: Path, server: ModelServer, count: int) -> None:
    """`text2qa` as it is shipped, on shorter texts and answers, and beside it a structured step."""
    shipped = files("dataflow_assets") / "pipelines"
    pipeline = yaml.safe_load((shipped / "text2qa.yaml").read_text())
    lines = (shipped / "data" / "text2qa_sample.jsonl").read_text().splitlines()[:count]
    rows = [{**row, "text": row["text"][:120]} for row in map(json.loads, lines)]
    (folder / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    serving = {"type": "openai", "model": server.model, "base_url": server.base_url}
    limits = {"concurrency": 4, "max_retries": 0, "structured": "prompt", "read_timeout_s": 300.0}
    pipeline |= {"source": {"path": "in.jsonl"}, "servings": {"default": {**serving, **limits}}}
    for step in pipeline["steps"][1:3]:
        step["params"]["max_tokens"] = 16
    params = {"prompt": "Which topic is this?\n{text}", "schema": {"topic": "string"}, "max_tokens": 12}
    topic = {"name": "topic", "type": "generate_structured", "params": params, "depends_on": ["chunks"]}
    pipeline["steps"].append(topic)
    (folder / "asks.yaml").write_text(yaml.safe_dump(pipeline, sort_keys=False))


@pytest.mark.slow
@pytest.mark.parametrize("count", [10, pytest.param(30, marks=pytest.mark.long)])
def test_rows_of_a_real_model_are_kept_or_fail_for_a_reason(
    tmp_path: Path, smollm2_server: ModelServer, count: int
) -> None:
    write_pipeline(tmp_path, smollm2_server, count)
    env = environment({"DAGSTER_HOME": str(tmp_path / "home")})
    done = finish(start(tmp_path, "run", "asks.yaml", env=env), LIMIT_S)
    assert done.code in (0, 5) and done.is_clean, done
    status = json.loads(finish(start(tmp_path, "status", "asks.yaml", "--json", env=env)).out)
    steps = {step["name"]: step for step in status["steps"]}
    assert (status["state"], steps["chunks"]["rows_out"]) == ("done", count)
    knowledge, topic = steps["knowledge"], steps["topic"]
    assert knowledge["rows_out"] + knowledge["failed"] == topic["rows_out"] + topic["failed"] == count
    assert topic["usage"]["calls"] == count and topic["usage"]["tokens_out"] > 0
    assert classes(tmp_path) <= OF_A_SMALL_MODEL


def classes(folder: Path) -> set[str]:
    """The classes of all failed rows."""
    found = (folder / "dataflow_data" / "text2qa").glob("text2qa_step*/_failed/*.jsonl")
    return {json.loads(line)["error_class"] for file in found for line in file.read_text().splitlines()}


def test_the_environment_names_the_model(tmp_path: Path, smollm2_server: ModelServer) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "Say hello."}\n')
    step = {"name": "said", "type": "generate", "params": {"prompt": "{text}", "max_tokens": 60}}
    pipeline = {"name": "hello", "source": {"path": "in.jsonl"}, "steps": [step]}
    (tmp_path / "asks.yaml").write_text(yaml.safe_dump(pipeline))
    named = {"OPENAI_BASE_URL": smollm2_server.base_url, "OPENAI_MODEL": smollm2_server.model}
    env = environment({"DAGSTER_HOME": str(tmp_path / "home"), "OPENAI_API_KEY": os.devnull, **named})
    done = finish(start(tmp_path, "run", "asks.yaml", env=env))
    assert done.code in (0, 5) and "scripted" not in done.out
