"""Filters rows by the address that their text comes from."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from urllib.parse import unquote

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from dataflow_assets.operators.filters.listed_words import folded, read_lists
from dataflow_assets.operators.operator import ColumnParams, TextFilter
from dataflow_assets.operators.registry import register

_ADDRESS = re.compile(
    r"\s*(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://)?(?:[^/?#@\s]*@)?"
    r"(?P<host>\[[^\]/?#]*\]|[^/?#:@\s]+)(?::\d*)?(?P<page>[/?#].*)?\s*",
    re.DOTALL,
)
_TOKEN = re.compile(r"[^\W_]+")
_DOT = re.compile(r"\.")
_PAGE_END = re.compile(r"[/?]")


class _UrlParams(ColumnParams):
    column: str = Field("url", description="The column with an address (URL) or a host name.")
    domains: list[str] = Field([], description="Domains; their subdomains are meant too.")
    domain_files: list[str] = Field([], description="UTF-8 files with one domain a line.")
    urls: list[str] = Field([], description="Addresses; the pages below them are meant too.")
    url_files: list[str] = Field([], description="UTF-8 files with one address a line.")
    words: list[str] = Field([], description="Words that may not stand in an address, e.g. `casino`.")
    word_files: list[str] = Field([], description="UTF-8 files with one such word a line.")
    max_words: int = Field(0, ge=0, description="How many of `words` an address that stays may have.")
    parts: list[str] = Field(
        [], description="What may not stand anywhere in an address, also inside a word, e.g. `porn`."
    )
    _domains: frozenset[str] = PrivateAttr(frozenset())
    _urls: frozenset[str] = PrivateAttr(frozenset())
    _words: frozenset[str] = PrivateAttr(frozenset())

    @field_validator("parts")
    @classmethod
    def _parts_are_not_blank(cls, parts: list[str]) -> list[str]:
        if not all(part.strip() for part in parts):
            raise ValueError("a blank part is in every address")
        return [folded(part) for part in parts]

    @model_validator(mode="after")
    def _lists_can_be_read(self, info: ValidationInfo) -> "_UrlParams":
        words = [folded(word) for word in [*self.words, *read_lists(self.word_files, info)]]
        for word in words:
            if not _TOKEN.fullmatch(word):
                raise ValueError(f"word {word!r} is not letters and digits alone; `parts` finds any text")
        self._domains = frozenset(map(_listed_domain, [*self.domains, *read_lists(self.domain_files, info)]))
        self._urls = frozenset(map(_listed_page, [*self.urls, *read_lists(self.url_files, info)]))
        self._words = frozenset(words)
        if not (self._domains or self._urls or self._words or self.parts):
            raise ValueError(
                "there is nothing to look for: give domains, urls, words, parts or files of them"
            )
        return self

    def lists(self) -> Mapping[str, frozenset[str]]:
        """The entries of each list, in the form in which they are compared."""
        return {"domains": self._domains, "urls": self._urls, "words": self._words}


@register
class FilterUrl(TextFilter):
    """Keeps the rows whose address is on no list of domains, addresses or words.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string). The case of
    a host, scheme, user, port, a full stop or slash at the end and a fragment count not, nor, in `urls`,
    `www.`; a domain in other letters and its `xn--` form are the same. A domain means its subdomains:
    `spam.org` also drops `www.shop.spam.org`, not `notspam.org`. An address means the pages below it:
    `a.org/x` also drops `a.org/x/y?z`. Words are compared with the runs of letters and digits of the decoded
    address. Rejected rows have the reason `listed_domain`, `listed_url`, `listed_words` or `listed_part`, the
    first that holds. What is no address has no domain and is judged by words and parts. Raises nothing on
    text. The content of the files decides: a changed file is a changed step. Source: the lists of datatrove's
    URLFilter (RefinedWeb, Penedo et al. 2023).

    Example:
        - {name: good_sites, type: filter_url, params: {domains: [spam.example], words: [casino]}}
    """

    name = "filter_url"
    Params = _UrlParams
    params: _UrlParams

    def identity(self) -> Mapping[str, object]:
        """The hash of each list, wherever its entries come from."""
        return {
            name: hashlib.sha256("\n".join(sorted(entries)).encode()).hexdigest()
            for name, entries in self.params.lists().items()
        }

    @cached_property
    def _longest(self) -> Mapping[str, int]:
        """The characters of the longest entry of each list."""
        return {name: max(map(len, entries), default=0) for name, entries in self.params.lists().items()}

    def reason(self, text: str) -> str | None:
        """The list on which the address is, or None."""
        lists, longest = self.params.lists(), self._longest
        if lists["domains"] and not lists["domains"].isdisjoint(_domains_of(text, longest["domains"])):
            return "listed_domain"
        if lists["urls"] and not lists["urls"].isdisjoint(_pages_of(text, longest["urls"])):
            return "listed_url"
        address = folded(unquote(text))
        words = _TOKEN.findall(address) if lists["words"] else ()
        if sum(word in lists["words"] for word in words) > self.params.max_words:
            return "listed_words"
        return "listed_part" if any(part in address for part in self.params.parts) else None


def _host(address: str) -> str:
    """The host in lower case and ASCII letters (IDNA), or an empty text."""
    found = _ADDRESS.fullmatch(address)
    host = found["host"].lower().rstrip(".") if found else ""
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host


def _listed_domain(entry: str) -> str:
    host = _host(entry.removeprefix("*.").lstrip("."))
    if not host or "/" in entry.strip("/").removeprefix("http://").removeprefix("https://"):
        raise ValueError(f"{entry!r} is no domain; expected one like `spam.example`")
    return host


def _listed_page(entry: str) -> str:
    if not _host(entry):
        raise ValueError(f"{entry!r} is no address; expected one like `spam.example/page`")
    return _page(entry)


def _page(address: str) -> str:
    """Host and page, without `www.`, fragment and slash at the end."""
    found = _ADDRESS.fullmatch(address)
    page = (found["page"] or "").partition("#")[0] if found else ""
    return _host(address).removeprefix("www.") + page.rstrip("/")


def _domains_of(address: str, longest: int) -> Iterator[str]:
    """The host and every domain that it belongs to, of at most so many characters."""
    host = _host(address)
    if len(host) <= longest:
        yield host
    for cut in _DOT.finditer(host, max(0, len(host) - longest - 1)):
        yield host[cut.end() :]


def _pages_of(address: str, longest: int) -> Iterator[str]:
    """The page and those above it, of at most so many characters."""
    page = _page(address)
    if len(page) <= longest:
        yield page
    for cut in _PAGE_END.finditer(page, 0, longest + 1):
        yield page[: cut.start()]
