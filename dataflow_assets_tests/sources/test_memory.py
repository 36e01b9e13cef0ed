"""A large Parquet file, all of it one row group, is read in bounded memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dataflow_assets_tests.crash.command import environment

BENCHMARK = Path(__file__).parents[2] / "benchmarks/source_memory.py"


@pytest.mark.long
def test_a_row_group_of_300_mb_is_not_held(tmp_path):
    command = [sys.executable, str(BENCHMARK), "--megabytes", "300", "--ways", "path", "hf"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    peaks = {way["way"]: way["peak_mb"] for way in json.loads(done.stdout)["ways"]}
    assert set(peaks) == {"path", "hf"}
    assert max(peaks.values()) < 600
