"""`python -m dataflow_assets_tests.clickhouse.driver MOMENT-METHOD:N ARGUMENTS`: the command, killed there.

It dies before or after the N-th call of a method of `Connection`. Inserts have 20 rows at most.
"""

import sys

from dataflow_assets.cli.main import main
from dataflow_assets.clickhouse import sink
from dataflow_assets.clickhouse.connection import Connection
from dataflow_assets_tests.crash.driver import die_after, die_before

MOMENTS = {"before": die_before, "after": die_after}

if __name__ == "__main__":
    point, _, number = sys.argv.pop(1).partition(":")
    moment, _, method = point.partition("-")
    sink._INSERT_ROWS = 20
    MOMENTS[moment](Connection, method, int(number))
    main()
