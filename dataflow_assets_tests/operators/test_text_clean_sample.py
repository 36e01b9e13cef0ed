"""The pipeline that comes with the package, on its own sample."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

import dataflow_assets
from dataflow_assets.operators import DatasetOperator, RowOperator, build_operator
from dataflow_assets_tests.operators.sample_tables import table

PIPELINES = Path(dataflow_assets.__file__).parent / "pipelines"
PIPELINE = yaml.safe_load((PIPELINES / "text_clean.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def held() -> dict[str, pa.Table]:
    """What each step holds, by its name."""
    lines = (PIPELINES / PIPELINE["source"]["path"]).read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    tables = {"source": table(**{name: [row[name] for row in rows] for name in rows[0]})}
    current = tables["source"]
    for step in PIPELINE["steps"]:
        operator = build_operator(step["type"], step["params"])
        if isinstance(operator, DatasetOperator):
            [(_, verdict)] = operator.decide([("b0", operator.summarize(current))])
            outcome = operator.apply_verdict(current, verdict)
        else:
            assert isinstance(operator, RowOperator)
            outcome = operator.apply(current)
        assert outcome.failed is None
        current = tables[step["name"]] = outcome.kept
    return tables


def test_the_sample_holds_english_and_chinese(held: dict[str, pa.Table]):
    assert held["source"].num_rows == 323
    assert {"en", "zh"} <= set(held["source"]["lang"].to_pylist())


def test_each_step_has_work_to_do(held: dict[str, pa.Table]):
    tables = list(held.values())
    for before, after in pairwise(tables):
        assert not before.equals(after)


def test_what_comes_out_is_plain_tidy_and_unique(held: dict[str, pa.Table]):
    texts = held["unique"]["text"].to_pylist()
    assert len(texts) == len(set(texts)) == 292
    assert not any(re.search("<div|https?://[a-z]|\n\n\n|\x1b", text) for text in texts)
    assert all(len(text) >= 20 and text == text.strip() for text in texts)
