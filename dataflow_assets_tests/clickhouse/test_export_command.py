import sys
from pathlib import Path

import pytest

from dataflow_assets.clickhouse.sink import export_to_clickhouse
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.clickhouse.shop import is_in
from dataflow_assets_tests.clickhouse_server.process import PASSWORD, ClickHouse
from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.crash.command import Finished, Running, environment, finish
from dataflow_assets_tests.walk import walk

PIPELINE = """name: shop
source: {path: in.jsonl}
batch_rows: 10
root: data
steps:
  - {name: kept, type: map_python, params: {function: "dataflow_assets_tests.walk:nothing_new"}}
"""
ROWS = 60
QUICK = ["before-insert:2", "after-insert:2"]
SLOW = [
    "before-insert:1",
    "after-insert:1",
    "before-insert:3",
    "after-insert:3",
    "after-run:1",
    "after-rows:4",
]
POINTS = [*QUICK, *(pytest.param(point, marks=pytest.mark.long) for point in SLOW)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pipeline's folder."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.yaml").write_text(PIPELINE)
    (folder / "in.jsonl").write_text("".join(f'{{"n": {n}, "text": "row {n}"}}\n' for n in range(ROWS)))
    walk(load_pipeline(folder / "shop.yaml"))
    return folder


def killed(folder: Path, point: str, *arguments: str) -> Finished:
    command = [sys.executable, "-m", "dataflow_assets_tests.clickhouse.driver", point, *arguments]
    return finish(Running(command, cwd=folder, env=environment()))


@pytest.mark.parametrize("point", POINTS)
def test_an_export_that_is_killed_goes_on(clickhouse: ClickHouse, database: str, project: Path, point: str):
    arguments = ("export", "shop.yaml", "--to", f"{clickhouse.url}/{database}/rows")
    assert killed(project, point, *arguments).code == -9
    work = PipelineWork(load_pipeline(project / "shop.yaml"))
    export_to_clickhouse(work, None, arguments[-1])
    assert is_in(clickhouse, f"{database}.rows", work)


def test_the_command_tells_what_it_did(
    command_here: Command, clickhouse: ClickHouse, database: str, project: Path
):
    to = f"{clickhouse.url}/{database}/rows"
    told = [command_here(project, "export", "shop.yaml", "--to", to).out for _ in range(2)]
    assert told == [
        f"60 rows in {to}: 6 batches sent, 0 as they were, 0 rows of before deleted\n",
        f"60 rows in {to}: 0 batches sent, 6 as they were, 0 rows of before deleted\n",
    ]


def test_a_password_is_never_told(
    command_here: Command,
    database: str,
    clickhouse: ClickHouse,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.delenv("CLICKHOUSE_PASSWORD")
    for secret in ("wrong%2Fsecret", "pa55-w0rd%2F%40%3A%25"):
        to = clickhouse.url.replace("@", f":{secret}@", 1) + f"/{database}/rows"
        done = command_here(project, "export", "shop.yaml", "--to", to)
        assert done.code == (0 if secret.startswith("pa55") else 2)
        assert "secret" not in done.out + done.err and PASSWORD not in done.out + done.err
        assert "w0rd" not in done.out + done.err


@pytest.mark.parametrize(
    ("to", "options"),
    [
        ("x.jsonl", ["--vector", "n"]),
        ("x.jsonl", ["--column", "prompt=n"]),
        ("folder", ["--as", "hf", "--append"]),
        ("folder", ["--as", "hf", "--croissant", "x.json"]),
        ("x.csv", ["--append", "--croissant", "x.json"]),
        ("clickhouse://u:pa55@localhost/d/t", ["--for-spreadsheet"]),
    ],
)
def test_options_of_another_kind_of_export_are_refused(
    command_here: Command, project: Path, to: str, options: list[str]
):
    done = command_here(project, "export", "shop.yaml", "--to", to, *options)
    assert done.code == 2 and "says nothing of what is written to" in done.err
    assert options[-1] in done.err or options[-2] in done.err
    assert "pa55" not in done.err and not (project / to).exists()
