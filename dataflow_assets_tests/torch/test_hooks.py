import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader

from dataflow_assets.errors import ConfigError
from dataflow_assets.torch import FlowDataLoader, FlowDataset, FlowIterableDataset
from dataflow_assets_tests.torch.made_steps import ids, made, texts


def lengths(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"row_id": row["row_id"], "chars": len(row["text"])} for row in rows]


def as_columns(rows: list[dict[str, Any]]) -> dict[str, list]:
    found = lengths(rows)
    return {name: [example[name] for example in found] for name in found[0]}


def doubled(examples: list[dict[str, Any]]) -> dict[str, list]:
    return {
        "row_id": [example["row_id"] for example in examples],
        "twice": [2 * e["chars"] for e in examples],
    }


@pytest.mark.parametrize("tokenize", [lengths, as_columns])
def test_tokenize_makes_examples_and_collate_batches(hundred: FlowDataset, tokenize: Any):
    loader = FlowDataLoader(hundred, 4, tokenize=tokenize, collate_fn=doubled, num_workers=1)
    batches = list(loader)
    assert batches[0]["twice"] == [2 * len(row["text"]) for row in hundred.__getitems__(range(4))]
    assert (len(batches), len(ids(batches))) == (26, 101)


@pytest.mark.parametrize("made", [[], {"a": [1]}, 3, None])
def test_an_example_for_each_row_or_a_mistake(hundred: FlowDataset, made: Any):
    with pytest.raises(ConfigError, match="one example for each row"):
        next(iter(FlowDataLoader(hundred, 4, tokenize=lambda rows: made)))


def test_hooks_run_in_spawned_workers(hundred: FlowDataset):
    options: dict[str, Any] = {"shuffle": True, "tokenize": lengths, "collate_fn": doubled}
    spawned = FlowDataLoader(
        hundred, 8, num_workers=1, multiprocessing_context="spawn", persistent_workers=True, **options
    )
    here = FlowDataLoader(hundred, 8, **options)
    assert [ids(spawned), ids(spawned)] == [ids(here), ids(here)]


def test_the_data_set_serves_torch_s_own_loader(hundred: FlowDataset):
    own = DataLoader(hundred, 10, shuffle=True, num_workers=2, collate_fn=doubled_texts)
    assert sorted(row_id for batch in own for row_id in batch) == sorted(f"in:{n + 1}" for n in range(101))


def doubled_texts(rows: list[dict[str, Any]]) -> list[str]:
    return [row["row_id"] for row in rows]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch_size=0; expected a whole number, 1 or more"),
        ({"batch_size": 1.5}, "batch_size=1.5; expected"),
        ({"num_workers": -1}, "num_workers=-1; expected a whole number, 0 or more"),
        ({"chunk_rows": 0}, "chunk_rows=0; expected"),
        ({"seed": -1}, "seed=-1; expected a whole number, from 0 to 18,446,744,073,709,551,615"),
        ({"seed": None}, "seed=None; expected"),
        ({"seed": 2**64}, f"seed={2**64}; expected"),
        ({"rank": 1}, "rank"),
    ],
)
def test_numbers_that_cannot_be_are_a_mistake(hundred: FlowDataset, options: dict, words: str):
    with pytest.raises(ConfigError, match=words):
        FlowDataLoader(hundred, **options)


def test_a_stream_and_an_epoch_take_no_other_numbers_either(hundred: FlowDataset):
    with pytest.raises(ConfigError, match="seed='1'; expected"):
        FlowIterableDataset(hundred, seed="1")  # pyright: ignore[reportArgumentType]
    for rows in (FlowIterableDataset(hundred), FlowDataLoader(hundred, seed=2**64 - 1, shuffle=True)):
        with pytest.raises(ConfigError, match="epoch=-1; expected"):
            rows.set_epoch(-1)


def test_the_environment_says_the_rank(hundred: FlowDataset, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(ConfigError, match="rank 1 of world size None"):
        FlowDataLoader(hundred)
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert len(ids(FlowDataLoader(hundred))) == 51
    monkeypatch.setenv("RANK", "one")
    with pytest.raises(ConfigError, match="RANK is 'one'"):
        FlowDataLoader(hundred)


RANKS = """
import sys, torch.distributed as distributed
from dataflow_assets.torch import FlowDataLoader, FlowDataset
rank, store, file, root = int(sys.argv[1]), *sys.argv[2:]
distributed.init_process_group("gloo", f"file://{store}", rank=rank, world_size=2)
loader = FlowDataLoader(FlowDataset(file, root=root), 4, shuffle=True, drop_last=True)
distributed.barrier()
print(sorted(row_id for batch in loader for row_id in batch["row_id"]))
distributed.destroy_process_group()
"""


def test_torch_distributed_says_the_rank(tmp_path: Path):
    made(tmp_path, texts(21))
    file = tmp_path / "p.yaml"
    file.write_text(
        "name: p\nsource: {path: in.jsonl}\nbatch_rows: 7\nsteps:\n  - {name: low, type: lowercase}\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [str(tmp_path / "store"), str(file), str(tmp_path / "data")]
    script = RANKS.replace("FlowDataset(file", "FlowDataset(file, 0")
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(rank), *arguments], env=environment, stdout=subprocess.PIPE
        )
        for rank in range(2)
    ]
    first, second = (eval(rank.communicate(timeout=120)[0]) for rank in ranks)
    assert (len(first), len(second), set(first) & set(second)) == (8, 8, set())


IMPORTS = """
import sys, dataflow_assets.exports.writing
print([name for name in ("torch", "datasets") if name in sys.modules])
import dataflow_assets.torch
print([name for name in ("dagster", "datasets", "ray") if name in sys.modules])
"""


def test_exports_need_no_torch_and_loading_no_dagster():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", IMPORTS], env=environment, capture_output=True, text=True)
    assert done.stdout == "[]\n[]\n", done.stderr
