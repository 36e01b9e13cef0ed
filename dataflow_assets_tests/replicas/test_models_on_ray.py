"""Operators with a local model give on replicas what they give in one process, in the same order."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dataflow_assets.batch import values_of
from dataflow_assets.engines.replicas.ray_connection import RaySettings
from dataflow_assets.replicated import replicated
from dataflow_assets_tests.operators.models.samples import real_texts
from dataflow_assets_tests.operators.models.test_model_operator import COLUMNS, built
from dataflow_assets_tests.operators.sample_tables import ids, table

NAMES = [name if name == "score_ifd" else pytest.param(name, marks=pytest.mark.slow) for name in COLUMNS]


def assert_near(found: pa.Table, expected: pa.Table) -> None:
    assert found.schema == expected.schema
    for name in expected.column_names:
        if pa.types.is_floating(expected.schema.field(name).type) or name == "embedding":
            pairs = [np.array(values_of(rows, name), float) for rows in (found, expected)]
            assert np.allclose(*pairs, rtol=1e-3, atol=1e-5, equal_nan=True)
        else:
            assert found[name] == expected[name]


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_of_one_process(
    ray_cluster: RaySettings, tiny_gpt2: Path, tiny_classifier: Path, name: str
) -> None:
    folder = tiny_classifier if name == "classify_with_model" else tiny_gpt2
    operator, rows = built(name, model=str(folder), device="cpu"), table(text=real_texts(40))
    expected = operator.apply(rows)
    with replicated(operator, replicas=2, num_gpus_per_replica=0.5, chunk_rows=7, ray=ray_cluster) as model:
        found = model.apply(rows)
    assert expected.kept.num_rows > 20
    assert_near(found.kept, expected.kept)
    assert ids(found.failed) == ids(expected.failed)
