"""Debian's Chromium, which these tests drive; nothing is downloaded."""

import os

CHROMIUM = os.environ.get("DATAFLOW_CHROMIUM", "/usr/bin/chromium")


def chromium_is_there() -> bool:
    """Whether the browser is installed."""
    return os.access(CHROMIUM, os.X_OK)
