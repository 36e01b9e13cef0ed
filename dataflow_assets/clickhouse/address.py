"""`clickhouse://user@host:port/database/table`: where a table is, without its password in any text."""

import os
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from dataflow_assets.errors import ConfigError

SCHEME = "clickhouse://"
USER_VARIABLE = "CLICKHOUSE_USER"
PASSWORD_VARIABLE = "CLICKHOUSE_PASSWORD"
_PORT, _SECURE_PORT = 8123, 8443
_FORM = "clickhouse://[user[:password]@]host[:port]/[database/]table[?secure=true]"


@dataclass(frozen=True)
class Address:
    """A server, reached over HTTP, and a table of it; `table` is "" where none is named.

    The password is not in its text.
    """

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    database: str
    table: str
    secure: bool

    def __str__(self) -> str:
        path = "/".join(filter(None, (self.database, self.table)))
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SCHEME}{self.user}@{host}:{self.port}/{path}"

    @classmethod
    def of(cls, url: str, needs_table: bool = True) -> "Address":
        """The address in a URL. Raises ConfigError, which tells nothing of the URL but its form.

        User and password that the URL does not name are those of CLICKHOUSE_USER and CLICKHOUSE_PASSWORD.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ConfigError(f"the ClickHouse URL has no valid host and port; expected {_FORM}") from error
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        secure = options.pop("secure", "false")
        path = [unquote(part) for part in parts.path.split("/") if part]
        if parts.scheme != SCHEME[:-3] or not parts.hostname or parts.fragment or len(path) > 2:
            raise ConfigError(f"a ClickHouse URL is {_FORM}")
        if options or secure not in ("true", "false"):
            raise ConfigError(f"a ClickHouse URL has no options but secure=true or secure=false: {_FORM}")
        if needs_table and not path:
            raise ConfigError(f"the ClickHouse URL names no table; expected {_FORM}")
        table = path.pop() if needs_table else ""
        user = unquote(parts.username or "") or os.environ.get(USER_VARIABLE, "default")
        return cls(
            parts.hostname,
            port or (_SECURE_PORT if secure == "true" else _PORT),
            user,
            unquote(parts.password) if parts.password is not None else os.environ.get(PASSWORD_VARIABLE, ""),
            path[0] if path else "default",
            table,
            secure == "true",
        )
