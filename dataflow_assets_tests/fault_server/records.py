"""What the server remembers of each request, as the server writes it and as tests read it."""

from collections import Counter
from dataclasses import dataclass, field

import xxhash


def content_hash(content: str) -> str:
    """The hash by which a request's content is counted."""
    return xxhash.xxh3_64_hexdigest(content.encode(errors="surrogatepass"))


@dataclass(slots=True)
class Asked:
    """One request. `ordinal` counts from 1; `time` is Unix time; `seconds` until its answer was sent.

    `content` is the first 200 characters of the last message, prompt or input. `call` is the hash of
    the whole body. `complete` is whether the behaviour was played to its end with the client there.
    """

    ordinal: int
    time: float
    path: str
    model: str
    content: str
    content_hash: str
    call: str
    kind: str = ""
    status: int = 0
    seconds: float = 0.0
    complete: bool = False


@dataclass
class Stats:
    """What came in since the last reset. `in_flight_max` is the high-water mark of open requests."""

    requests: list[Asked] = field(default_factory=list)
    in_flight: int = 0
    in_flight_max: int = 0
    connections: int = 0
    last_head: str = ""
    last_body: dict[str, object] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Requests in all."""
        return len(self.requests)

    @property
    def answered(self) -> int:
        """Requests that got a whole answer with status 200."""
        return sum(asked.complete and asked.status == 200 for asked in self.requests)

    @property
    def per_second(self) -> dict[int, int]:
        """Requests that came in each second of Unix time."""
        return dict(Counter(int(asked.time) for asked in self.requests))

    @property
    def per_content(self) -> dict[str, int]:
        """How often each content was asked, by its first 200 characters."""
        return dict(Counter(asked.content for asked in self.requests))

    def most_within(self, seconds: float) -> int:
        """The most requests that came in any window of this length."""
        times = sorted(asked.time for asked in self.requests)
        first = most = 0
        for last, time in enumerate(times):
            while times[first] <= time - seconds:
                first += 1
            most = max(most, last - first + 1)
        return most
