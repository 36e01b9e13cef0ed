"""How long a server asks to wait before the next call."""

import re
from collections.abc import Mapping
from datetime import timezone
from email.utils import parsedate_to_datetime

_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]*)?|\.[0-9]+", re.ASCII)


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds from `now` (Unix time) that the headers ask for; None where they ask for nothing readable.

    Reads `retry-after-ms` (milliseconds), then `Retry-After` (seconds, with a fraction or not, or an
    HTTP-date; one that is past is 0). Names in any case. A negative number counts as unreadable.
    Nothing is capped here: that is for whoever waits. Source: RFC 9110, section 10.2.3.
    """
    found = {name.lower(): value.strip() for name, value in headers.items()}
    milliseconds = _number(found.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = found.get("retry-after", "")
    seconds = _number(value)
    return _until(value, now) if seconds is None else seconds


def _number(value: str) -> float | None:
    return float(value) if _NUMBER.fullmatch(value) else None


def _until(value: str, now: float) -> float | None:
    """Seconds until an HTTP-date, 0 where it is past; None for anything else."""
    if ":" not in value:
        return None
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return max(0.0, moment.timestamp() - now)
