"""Values as database drivers give them to values that a column can hold, exactly."""

import datetime
import decimal
import enum
import ipaddress
import uuid
from collections.abc import Callable, Mapping

_TEXTS = (
    uuid.UUID,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Interface,
    ipaddress.IPv6Interface,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
)


def plain_value(value: object) -> object:
    """The value as JSON has it: decimals, dates and times as text (ISO 8601, instants in UTC).

    What it does not know stays as it is, and is refused where the row is made.
    """
    convert = _CONVERTERS.get(type(value))
    if convert is not None:
        return convert(value)
    if isinstance(value, enum.Enum):
        return plain_value(value.value)
    return str(value) if isinstance(value, _TEXTS) else value


def _instant(value: datetime.datetime) -> str:
    if value.tzinfo is not None:
        value = value.astimezone(datetime.timezone.utc)
    return value.isoformat(timespec="microseconds")


def _duration(value: datetime.timedelta) -> str:
    microseconds = value // datetime.timedelta(microseconds=1)
    seconds, rest = divmod(abs(microseconds), 10**6)
    return f"{'-' if microseconds < 0 else ''}PT{seconds}.{rest:06d}S"


_CONVERTERS: Mapping[type, Callable] = {
    decimal.Decimal: lambda value: format(value, "f"),
    datetime.datetime: _instant,
    datetime.date: datetime.date.isoformat,
    datetime.time: lambda value: value.isoformat(timespec="microseconds"),
    datetime.timedelta: _duration,
    list: lambda value: [plain_value(inner) for inner in value],
    tuple: lambda value: [plain_value(inner) for inner in value],
    dict: lambda value: {key: plain_value(inner) for key, inner in value.items()},
}
