"""A connection to a ClickHouse server whose errors are ours and tell no password."""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from dataflow_assets.clickhouse.address import Address
from dataflow_assets.errors import ConfigError, DataflowError
from dataflow_assets.optional_packages import require

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

_MAX_MESSAGE_CHARS = 600
_UNKNOWN_DATABASE = 81
_REFUSED_CODES = {192, 193, 194, 497, 516}
# What was inserted is counted by batch, so blocks that look alike must not be dropped; a null that a
# column cannot hold is an error, not an empty text.
_INSERT_SETTINGS = {"insert_deduplicate": 0, "async_insert": 0, "input_format_null_as_default": 0}


class Connection:
    """What is asked of one server. `failure` is what is raised where it fails, and `advice` ends its text."""

    def __init__(self, client: "Client", address: Address, failure: type[DataflowError], advice: str) -> None:
        self._client = client
        self._address = address
        self._failure = failure
        self._advice = advice

    def rows(self, query: str, **parameters: object) -> list[tuple]:
        """All rows of a small result; `{name:Type}` in the query is the parameter."""
        with self._errors():
            return [tuple(row) for row in self._client.query(query, parameters=parameters).result_rows]

    def run(self, command: str, **parameters: object) -> None:
        """Runs a command."""
        with self._errors():
            self._client.command(command, parameters=parameters)

    def insert(self, table: str, rows: pa.Table) -> None:
        """Inserts rows into a table, whose name is quoted already."""
        with self._errors():
            self._client.insert_arrow(table, rows, settings=dict(_INSERT_SETTINGS))

    @contextmanager
    def arrow_batches(
        self, query: str, block_rows: int, **parameters: object
    ) -> Iterator[Iterator[pa.RecordBatch]]:
        """The rows of a large result, a block of at most `block_rows` at a time."""
        settings = {"max_block_size": block_rows, "output_format_json_quote_denormals": 1}
        with (
            self._errors(),
            self._client.query_arrow_stream(
                query, parameters=parameters, settings=settings, use_strings=True
            ) as stream,
        ):
            yield iter(stream)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        from clickhouse_connect.driver.exceptions import ClickHouseError

        try:
            yield
        except (ClickHouseError, pa.ArrowException, OSError) as error:
            raise _told(error, self._address, self._failure, self._advice) from error


def connect(address: Address, asker: str, failure: type[DataflowError], advice: str) -> Connection:
    """A connection, open as long as it is used. Any thread may ask.

    Raises ConfigError without the extra or the right user and password, the failure where there is no server.
    """
    require({"clickhouse_connect": "clickhouse"}, asker)
    import clickhouse_connect
    from clickhouse_connect.driver.exceptions import ClickHouseError

    try:
        client = clickhouse_connect.get_client(
            host=address.host,
            port=address.port,
            username=address.user,
            password=address.password,
            database=address.database,
            secure=address.secure,
            autogenerate_session_id=False,
        )
    except ClickHouseError as error:
        raise _told(error, address, failure, advice) from error
    connection = Connection(client, address, failure, advice)
    weakref.finalize(connection, client.close)
    return connection


def _told(error: Exception, address: Address, failure: type[DataflowError], advice: str) -> DataflowError:
    text = " ".join(str(error).split())
    if address.password:
        text = text.replace(address.password, "***")
    text = f"{address}: {text[:_MAX_MESSAGE_CHARS]}"
    code = getattr(error, "code", None)
    if code == _UNKNOWN_DATABASE:
        return ConfigError(f"{text}; CREATE DATABASE first, or name another")
    if code in _REFUSED_CODES:
        return ConfigError(f"{text}; check user, password and grants (CLICKHOUSE_USER, CLICKHOUSE_PASSWORD)")
    return failure(f"{text}; {advice}")


def quoted(name: str) -> str:
    """A name as an identifier of SQL."""
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"
