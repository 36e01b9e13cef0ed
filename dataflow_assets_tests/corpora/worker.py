"""Works on a task in a process of its own: `worker.py PLACE BATCH_ROWS [wait]`.

A line for each batch that is written; with `wait` it then waits for a line before it goes on.
"""

import sys

from dataflow_assets.control import StopFlag
from dataflow_assets.corpora.cursors import Cursor
from dataflow_assets.corpora.enhancing import enhance
from dataflow_assets.corpora.store import Corpora
from dataflow_assets_tests.corpora.marking import NAME, marking


def _told(cursor: Cursor) -> None:
    print(cursor.processed, flush=True)
    if "wait" in sys.argv:
        sys.stdin.readline()


if __name__ == "__main__":
    with Corpora(sys.argv[1]) as corpora:
        enhance(corpora, corpora.dataset(NAME), marking(int(sys.argv[2])), StopFlag(), _told)
