"""`python -m …exports.append_driver POINT:N ARGUMENTS`: the command, killed at the N-th write.

`before`, `half` and `after` say how much of the write there is; the journal's writes count too.
"""

import os
import sys

from dataflow_assets.cli.main import main
from dataflow_assets.exports import growing_file
from dataflow_assets_tests.crash.driver import Countdown, die

write_all = growing_file._write_all


def killed(point: str, is_due: Countdown):
    def wrapped(descriptor: int, data: bytes, offset: int) -> None:
        if not is_due():
            return write_all(descriptor, data, offset)
        if point == "half":
            os.pwrite(descriptor, data[: len(data) // 2], offset)
        elif point == "zeros":  # what a file system may leave after a power failure
            os.pwrite(descriptor, data[: len(data) // 2] + bytes(len(data) - len(data) // 2), offset)
        elif point == "after":
            write_all(descriptor, data, offset)
        return die()

    return wrapped


if __name__ == "__main__":
    point, _, number = sys.argv.pop(1).partition(":")
    growing_file._write_all = killed(point, Countdown(int(number)))
    main()
