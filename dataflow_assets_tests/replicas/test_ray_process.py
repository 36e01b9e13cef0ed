"""What runs in a Ray replica, without Ray."""

import logging

import pytest

from dataflow_assets.engines.replicas.ray_process import _LastLines


def test_warnings_are_kept_until_they_are_taken() -> None:
    lines = _LastLines()
    lines.handle(logging.makeLogRecord({"name": "m", "levelname": "WARNING", "msg": "%d rows", "args": (2,)}))
    assert (lines.taken(), lines.taken()) == (("WARNING m: 2 rows",), ())


def test_a_line_that_cannot_be_formatted_fails_no_row(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _LastLines()
    lines.handle(logging.makeLogRecord({"msg": "%d rows", "args": ("two",)}))
    assert lines.taken() == ()
    assert "%d rows" in capsys.readouterr().err
