"""Operators of open-dataflow give on replicas what they give in one process, in the same order."""

import pytest

from dataflow_assets.engines.replicas.ray_connection import RaySettings
from dataflow_assets.operators import build_operator
from dataflow_assets.replicated import replicated
from dataflow_assets_tests.operators.sample_tables import ids, table

pytest.importorskip("dataflow", reason="open-dataflow is not installed")


def test_rows_are_those_of_one_process(ray_cluster: RaySettings) -> None:
    params = {
        "operator": "NgramFilter",
        "init": {"min_score": 0.6},
        "run": {"input_key": "text"},
        "columns": {"NgramScore": "float64"},
    }
    texts = [f"one two three four five {'six seven ' * (n % 7)}" if n % 9 else None for n in range(60)]
    operator, rows = build_operator("opendcai", params), table(text=texts)
    expected = operator.apply(rows)  # pyright: ignore[reportAttributeAccessIssue]
    with replicated(operator, replicas=2, num_gpus_per_replica=0.5, chunk_rows=7, ray=ray_cluster) as two:
        found = two.apply(rows)
    assert found.kept.equals(expected.kept) and found.kept.num_rows > 10
    assert ids(found.rejected) == ids(expected.rejected) != []
    assert found.failed is expected.failed is None
