"""The exceptions of this package, in one tree.

    DataflowError                  everything that this package raises on purpose
    ├── ConfigError                a pipeline, a parameter or a name is wrong; nothing was run (exit code 2)
    ├── SourceError                the input cannot be read as it is; nothing was run (exit code 2)
    ├── PipelineBusy               another process runs this pipeline; nothing was run (exit code 2)
    ├── TaskBusy                   another worker has this task on a corpus; nothing was run (exit code 2)
    ├── RunError                   the run began and could not go on (exit code 1)
    │   ├── StorageError           a file of the root cannot be read or written (full disk, permission)
    │   ├── CorruptFile            a stored file is not what its commit record says
    │   ├── MissingBatch           a batch that is needed was never committed
    │   ├── LedgerError            the ledger of answers is damaged, or cannot be read or written
    │   ├── CorpusError            a store of corpora cannot be read or written, or holds something else
    │   │   └── UnguardedWrite     a write that does not name its rows by their ids; nothing was changed
    │   ├── ReplicaError           the replicas of a step cannot be had, or die whatever they are given
    │   ├── ConservationError      an operator lost or invented rows; its commit was refused
    │   ├── UnwritableValue        a value that the step's format cannot hold exactly
    │   ├── NotReproduced          a locked run made other rows than its lock says
    │   └── CheckFailed            a blocking check failed; what is downstream was not made
    ├── Stopped                    a signal or a pause ended the run between two batches (exit code 3)
    │   └── Paused                 a person, a budget or a breaker paused the pipeline; `resume` goes on
    └── RowError                   one row cannot be done; it goes to `_failed`, the batch goes on
        ├── MissingValue           the row has no value in a column that the operator reads
        ├── WrongType              the row's value has another type than the operator needs
        ├── NoMainText             a web page has no main text
        ├── PatternTimeout         a regular expression did not end within its time limit
        └── WorkerDied             the worker process died on this row, three times

Every message says what was found, what was expected, where, and what to do.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

PauseCause = Literal["user", "budget", "breaker"]
Raised: TypeAlias = Exception | SystemExit  # by a user's code: `sys.exit` there ends its row, not the run


class DataflowError(Exception):
    """Everything that this package raises on purpose. `exit_code` is what the command ends with."""

    exit_code = 1


class ConfigError(DataflowError):
    """A pipeline, a parameter or a name is wrong. `problems` holds one line for each mistake."""

    exit_code = 2

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[type, tuple[list[str]]]:
        return type(self), (self.problems,)


class SourceError(DataflowError):
    """The input cannot be read as it is."""

    exit_code = 2


class PipelineBusy(DataflowError):
    """Another process runs this pipeline in this root."""

    exit_code = 2


class TaskBusy(DataflowError):
    """Another worker has this task on a corpus."""

    exit_code = 2


class RunError(DataflowError):
    """The run began and could not go on; what was committed stays."""


class StorageError(RunError):
    """A file of the root cannot be read or written."""


class CorruptFile(RunError):
    """A stored file is not what its commit record says."""


class MissingBatch(RunError):
    """A batch that is needed was never committed."""


class LedgerError(RunError):
    """The ledger of answers is damaged, or cannot be read or written."""


class CorpusError(RunError):
    """A store of corpora cannot be read or written, or holds something else than expected."""


class UnguardedWrite(CorpusError):
    """A write to a corpus that does not name its rows by the ids of rows that are there; nothing changed."""


class ReplicaError(RunError):
    """The replicas of a step cannot be had, or die whatever they are given."""


class ConservationError(RunError):
    """An operator lost or invented rows; its commit was refused."""


class UnwritableValue(RunError):
    """A value that the step's format cannot hold exactly."""


class NotReproduced(RunError):
    """A locked run made other rows than its lock says."""


class CheckFailed(RunError):
    """A blocking check of a step failed: what is downstream is not made, what was committed stays."""


class Stopped(DataflowError):
    """A signal or a pause ended the run between two batches; the same command goes on from there."""

    exit_code = 3


class Paused(Stopped):
    """The pipeline was paused by a person, by its budget, or by the breaker after failures in a row."""

    def __init__(self, message: str, cause: PauseCause = "user") -> None:
        super().__init__(message)
        self.cause: PauseCause = cause

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (str(self), self.cause)


class RowError(DataflowError):
    """One row cannot be done; raised by operators, it sends the row to `_failed`."""


class MissingValue(RowError):
    """The row has no value in a column that the operator reads."""


class WrongType(RowError):
    """The row's value has another type than the operator needs."""


class NoMainText(RowError):
    """A web page in which no main text was found."""


class PatternTimeout(RowError):
    """A regular expression did not end within its time limit on this row."""


class WorkerDied(RowError):
    """The worker process died on this row, as often as it was tried."""


def said_by(error: BaseException) -> str:
    """The error's own text, whatever its `__str__` does; that of a SystemExit names the call."""
    try:
        if isinstance(error, SystemExit):
            return f"sys.exit({'' if error.code is None else repr(error.code)}) was called"
        return str(error)
    except (Exception, SystemExit) as raised:  # noqa: BLE001  a user's error may raise anything
        return f"its text cannot be shown: that raised {type(raised).__name__}"
