"""`python -m dataflow_assets_tests.objects.driver POINT:N ARGUMENTS`: as the driver of the crash tests.

Its points, and places in the keeping of copies.
"""

import sys

from dataflow_assets.cli.main import main
from dataflow_assets.io.objects.copies import Copies
from dataflow_assets.io.objects.journal import Journal
from dataflow_assets_tests.crash import driver

POINTS = {
    **driver.POINTS,
    "before_note": lambda calls: driver.die_before(Journal, "add", calls),
    "after_lease": lambda calls: driver.die_before(Copies, "_copy", calls),
}

if __name__ == "__main__":
    point, _, number = sys.argv.pop(1).partition(":")
    POINTS[point](int(number))
    main()
