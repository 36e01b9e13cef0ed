"""Near-duplicates by the book: sets of tuples, every pair, no hash but datasketch's."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from datasketch import MinHash, MinHashLSH

Runs = frozenset[tuple[str, ...]]


def word_runs(simplified: str, n: int = 5) -> Runs:
    """All runs of `n` words."""
    words = simplified.split()
    return frozenset(tuple(words[begin : begin + n]) for begin in range(len(words) - n + 1))


def jaccard(first: Runs, second: Runs) -> float:
    """What two sets share of what they are together."""
    return len(first & second) / len(first | second)


def exact_repeats(sets: Sequence[Runs], threshold: float) -> dict[int, int]:
    """Each set that goes, with the first earlier set that stays and is similar enough."""
    having: dict[tuple[str, ...], list[int]] = defaultdict(list)

    def sharing(number: int) -> Iterable[int]:
        return Counter(other for run in sets[number] for other in having[run])

    def keep(number: int) -> None:
        for run in sets[number]:
            having[run].append(number)

    return _repeats(sets, threshold, sharing, keep)


def datasketch_repeats(sets: Sequence[Runs], threshold: float, bands: int, rows: int) -> dict[int, int]:
    """The same with candidates from datasketch's MinHash LSH."""
    lsh = MinHashLSH(num_perm=bands * rows, params=(bands, rows))
    hashes = []
    for runs in sets:
        hashes.append(MinHash(num_perm=bands * rows))
        hashes[-1].update_batch([" ".join(run).encode() for run in runs])

    def keep(number: int) -> None:
        lsh.insert(number, hashes[number])

    return _repeats(sets, threshold, lambda number: cast("list[int]", lsh.query(hashes[number])), keep)


def _repeats(
    sets: Sequence[Runs],
    threshold: float,
    candidates: Callable[[int], Iterable[int]],
    keep: Callable[[int], None],
) -> dict[int, int]:
    gone: dict[int, int] = {}
    for number, runs in enumerate(sets):
        similar = [other for other in candidates(number) if jaccard(runs, sets[other]) >= threshold]
        if similar:
            gone[number] = min(similar)
        else:
            keep(number)
    return gone
