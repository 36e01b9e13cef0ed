"""An import that is killed between two of its transactions."""

import os
import signal
import sys
from pathlib import Path

from dataflow_assets.control import StopFlag
from dataflow_assets.corpora.importing import import_source
from dataflow_assets.corpora.store import Corpora
from dataflow_assets.sources.spec import SourceSpec


class _Dies(StopFlag):
    """Kills the process when it is asked for the second time."""

    asked = 0

    def raise_if_up(self) -> None:
        self.asked += 1
        if self.asked == 2:
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """`PLACE FILE`."""
    place, file = sys.argv[1:]
    with Corpora(place, create=True) as corpora:
        import_source(corpora, "big", SourceSpec(path=Path(file).name), Path(file).parent, _Dies())
