"""Which modules a piece of work leaves imported, in a process of its own."""

import subprocess
import sys

from dataflow_assets_tests.crash.command import environment

_SCRIPT = """
import sys
from dataflow_assets.operators import build_operator
{work}
print(" ".join(sys.modules))
"""


def modules_after(work: str) -> set[str]:
    """The names of the modules."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(work=work)],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())
