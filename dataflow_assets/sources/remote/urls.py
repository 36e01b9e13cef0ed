"""URLs of a source, and how they are shown: without user, password, query and fragment."""

import re

_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def is_url(text: str) -> bool:
    """Whether the text is a URL and no path."""
    return _URL.match(text) is not None


def scheme_of(url: str) -> str:
    """The scheme in small letters."""
    return url.partition("://")[0].lower()


def shown_url(url: str) -> str:
    """The URL as it may be told and written: what logs in, or signs, is left out."""
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    host = place.rpartition("@")[2]
    if scheme.lower() in ("http", "https"):
        path = path.partition("#")[0].partition("?")[0]
        host = host.partition("?")[0]
    return f"{scheme}://{host}{slash}{path}"


def file_name(url: str) -> str:
    """The last part of the path; on the web without query, in a store with the `?` and `#` of its key."""
    path = shown_url(url).partition("://")[2].partition("/")[2] if is_url(url) else url
    return path.rstrip("/").rpartition("/")[2]
