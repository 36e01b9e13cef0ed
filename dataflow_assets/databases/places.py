"""Where a database is: from what a person wrote to a URL, and what it is called in messages."""

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from dataflow_assets.errors import ConfigError

_FORMS = {
    "sqlite": "sqlite:///FILE",
    "postgresql": "postgresql://USER@HOST/DATABASE",
    "mysql": "mysql://USER@HOST/DATABASE",
}
_KINDS = {name: name for name in _FORMS} | {"postgres": "postgresql", "mariadb": "mysql"}


def file_url(path: Path) -> URL:
    """The URL of the SQLite file at this path."""
    return URL.create("sqlite", database=str(path.absolute()))


def database_url(place: str, what: str, kinds: Sequence[str]) -> URL:
    """The URL of a path, or of a URL of one of these kinds (`sqlite`, `postgresql`, `mysql`).

    Its driver is the kind alone. `what` is kept there, for messages, which never hold the URL itself.
    Raises ConfigError.
    """
    if "://" not in place:
        return file_url(Path(place))
    expected = f"expected a path, {', '.join(_FORMS[kind] for kind in kinds)}"
    try:
        url = make_url(place)
    except ArgumentError:
        raise ConfigError(f"the URL of {what} cannot be read; {expected}") from None
    named = url.drivername.partition("+")[0]
    kind = _KINDS.get(named)
    if kind not in kinds:
        raise ConfigError(f"the URL of {what} begins with {named}://; {expected}")
    if kind == "sqlite":
        if url.database in (None, "", ":memory:"):
            raise ConfigError(f"the URL of {what} names no file; {expected}")
        return file_url(Path(str(url.database)))
    if kind == "mysql" and not url.database:
        raise ConfigError(f"the URL of {what} names no database; {expected}")
    return url.set(drivername=kind)


def file_of(url: URL) -> Path | None:
    """The file of a SQLite database, None for another one."""
    return Path(str(url.database)) if url.drivername == "sqlite" else None


def shown_place(url: URL) -> str:
    """The file, or host and database: what a message may say."""
    return str(file_of(url) or f"{url.host or 'localhost'}/{url.database or ''}")
