"""Runs a command and says what it cost: CPU-seconds of all its processes, wall time, largest process."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """`cpu_s` sums user and system time of the process and the children that it waited for.

    `peak_mb` is the peak resident memory of the largest of these processes.
    """

    cpu_s: float
    wall_s: float
    peak_mb: int

    def as_json(self) -> dict[str, float]:
        """The three numbers by name."""
        return asdict(self)


def cost_of(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Cost:
    """Runs the command in `folder` to its end. Raises RuntimeError with its last lines where it fails."""
    log = folder / "output.log"
    started = time.monotonic()
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **(environment or {})}, stdout=output, stderr=output
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{log.read_text()[-3000:]}")
    return Cost(
        cpu_s=round(usage.ru_utime + usage.ru_stime, 2),
        wall_s=round(time.monotonic() - started, 2),
        peak_mb=usage.ru_maxrss // 1024,
    )
