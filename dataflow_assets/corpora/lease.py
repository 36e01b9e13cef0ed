"""One worker a task at a time: a lock that the database or the kernel frees when its holder dies.

PostgreSQL and MySQL bind the lock to the connection, and the task is worked on over the same connection:
a worker that lost its lock has lost the means to write as well. SQLite has no such lock; there it is a
lock on a file beside the database.
"""

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator

import xxhash
from sqlalchemy import Connection, func, select

from dataflow_assets.corpora.database import CorpusDatabase
from dataflow_assets.errors import TaskBusy

# How long a killed worker's server may take to see that its connection is gone.
WAIT_S = 5.0
_LOOK_S = 0.05


@contextlib.contextmanager
def task_lease(database: CorpusDatabase, task: str, wait_s: float = WAIT_S) -> Iterator[Connection]:
    """The connection on which the task is worked on, as long as it is held. Raises TaskBusy."""
    with contextlib.ExitStack() as stack:
        with database.errors("written"):
            connection = stack.enter_context(database.engine.connect())
            take = _taker(database, task, connection, stack)
            end = time.monotonic() + wait_s
            while not take():
                if time.monotonic() > end:
                    raise TaskBusy(
                        f"the task {task!r} in {database.place} is being worked on by another process; wait "
                        "for it, or stop it: what it has written is kept"
                    )
                time.sleep(_LOOK_S)
        try:
            yield connection
        finally:
            # A pool would keep the connection, and the lock with it.
            connection.invalidate()


def worker_name() -> str:
    """Who works: `process 123 on host`."""
    return f"process {os.getpid()} on {socket.gethostname()}"


def _taker(
    database: CorpusDatabase, task: str, connection: Connection, stack: contextlib.ExitStack
) -> Callable[[], bool]:
    """Tries to take the lock, and says whether it is ours."""
    number = xxhash.xxh3_64_intdigest(f"{database.place}\0{task}".encode()) >> 1
    if database.file is not None:
        descriptor = os.open(f"{database.file}-{number:016x}.lock", os.O_RDWR | os.O_CREAT, 0o666)
        stack.callback(os.close, descriptor)
        return lambda: _flocked(descriptor)
    if database.dialect == "postgresql":
        lock = select(func.pg_try_advisory_lock(number))
    else:
        lock = select(func.get_lock(f"dataflow-{number:016x}", 0))

    def take() -> bool:
        taken = bool(connection.execute(lock).scalar())
        connection.rollback()  # the lock belongs to the connection, not to the transaction
        return taken

    return take


def _flocked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
