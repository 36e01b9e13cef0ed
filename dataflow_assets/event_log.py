"""Keeps the connections to Dagster's SQLite event log open during a run, instead of three an event."""

import contextlib
from collections.abc import Iterator

from dagster import DagsterInstance
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import SingletonThreadPool


@contextlib.contextmanager
def kept_connections(instance: DagsterInstance) -> Iterator[None]:
    """Within it an event costs a third (2 ms instead of 6); another kind of storage is left alone.

    Dagster makes an engine and a connection for each statement, so that processes may share the
    files. They still may: every statement is a transaction of its own, as before.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, SqliteEventLogStorage):
        yield
        return
    plain, engines = storage._connect, dict[str, Engine]()

    @contextlib.contextmanager
    def connect(shard: str) -> Iterator[Connection]:
        if shard not in engines:
            with plain(shard):
                pass  # makes the tables of a new file
            engines[shard] = create_engine(
                storage.conn_string_for_shard(shard),
                poolclass=SingletonThreadPool,
                connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS},
            )
        with storage._db_lock, engines[shard].begin() as connection:
            yield connection

    vars(storage)["_connect"] = connect
    try:
        yield
    finally:
        del vars(storage)["_connect"]
        for engine in engines.values():
            engine.dispose()
