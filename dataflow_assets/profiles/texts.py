"""What is measured of a text: lengths, shares of characters, remains of markup, repetition."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import xxhash

from dataflow_assets.profiles.characters import CJK, DIGIT, MARK, SPECIAL, counts_of_kinds
from dataflow_assets.profiles.sampling import below, joined
from dataflow_assets.text.language import han_share

_URL = re.compile(r"https?://(?:www\.)?|\bwww\.")
_HTML = re.compile(r"</?[A-Za-z][^<>]{0,200}>|&(?:#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});")
_LATIN = "€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_ODD = "\x80-\x9f¡-ª¬-º¼-¿€‚ƒ„†‡ˆ‰Š‹ŒŽ˜™š›œžŸ"
# What is left where characters were lost, where UTF-8 was read as Latin-1 or Windows-1252 (of two letters
# beside each other at least one sign that no sentence has), where GBK was, where UTF-8 was read as GBK.
_DAMAGED = re.compile(
    f"\ufffd|[ÂÃ][\x80-\xbf{_LATIN}]|(?:[ÎÏÐÑØÙ][\x80-\xbf{_LATIN}]){{2}}"
    f"|[à-ï](?:[{_ODD}][\x80-\xbf{_LATIN}]|[\x80-\xbf{_LATIN}][{_ODD}])|ð[\x80-\xbf{_LATIN}]{{3}}"
    "|(?!.(.)\\1\\1)(?:[À-ÖØ-öø-ÿ][¡-ÿ]|[¡-ÿ][À-ÖØ-öø-ÿ]){3}"
    "|[锛銆紝鐨殑浠鍙瀹屽鍏杩鍒鐢鏂鈥鏄璇鍦屾]|锟斤拷"
)
_MAYBE_DAMAGED = re.compile("[\ufffd\xa1-\xff锛銆紝鐨殑浠鍙瀹屽鍏杩鍒鐢鏂鈥鏄璇鍦屾锟]")
_CLOSING, _ENDS = " \t\r\n\"'”’」』）)]}*_", ".!?。！？…"
_TOKENS_A_WORD, _TOKENS_A_CJK_CHAR, _TOKENS_A_MARK = 1.2, 0.7, 0.6
_FIRST_CHARS = 4000
_MIN_NEAR_BYTES, _HEAD_BYTES, _NEAR_CHARS = 16, 32, 160
_WORD = 8
_FIRST_BYTES = np.array([(1 << (8 * bytes_)) - 1 for bytes_ in range(_WORD + 1)], np.uint64)
_LOWER_CASE = np.uint64(0x2020202020202020)
_GRAM = 3
_PIECES = re.compile(r"[\n.!?。！？]+")
_MIN_PIECE_CHARS, _MOST_PIECES = 12, 64
_NO_LETTERS = re.compile(r"[\W\d_]+")
_NO_ASCII_LETTERS = {code: None for code in range(128) if not chr(code).isalpha()}
_LONGEST_WORDS = 16
Tokenize = Callable[[Sequence[str]], Sequence[int]]

TEXT_MEASURES = {
    "chars": "characters",
    "words": "words; a Chinese, Japanese or Korean character is one",
    "tokens": "tokens of the given tokenizer, else an estimate of them",
    "special_share": "share of characters that are no letter, digit, white space or mark of a sentence",
    "digit_share": "share of characters that are digits",
    "urls": "web addresses",
    "html_remains": "HTML tags and entities",
    "damaged": "places where text was read in a wrong encoding, or lost characters",
    "repetition": "share of runs of three words that were in the text before",
    "unfinished": "1 where the text ends without a mark that ends a sentence",
}
TEXT_LABELS = {"language": "ISO 639-1 code of the text's beginning, `other` for one that is not known"}


def text_measures(texts: Sequence[str], tokenize: Tokenize | None = None) -> dict[str, np.ndarray]:
    """The measures by name, one value for each text; texts without characters have shares of 0."""
    kinds, words = counts_of_kinds(texts)
    chars = np.maximum(kinds.sum(axis=1), 1)
    marks = kinds[:, MARK] + kinds[:, SPECIAL]
    estimate = np.ceil(_TOKENS_A_WORD * words + _TOKENS_A_CJK_CHAR * kinds[:, CJK] + _TOKENS_A_MARK * marks)
    return {
        "chars": kinds.sum(axis=1),
        "words": words + kinds[:, CJK],
        "tokens": estimate if tokenize is None else np.array(tokenize(texts), np.float64),
        "special_share": kinds[:, SPECIAL] / chars,
        "digit_share": kinds[:, DIGIT] / chars,
        **{
            name: np.array([measure(text) for text in texts], np.float64)
            for name, measure in _OF_ONE_TEXT.items()
        },
    }


def _repetition(text: str) -> float:
    start = text[:_FIRST_CHARS]
    words: Sequence[str] = start.split()
    if len(start) > _LONGEST_WORDS * len(words):
        words = start  # Chinese: characters without spaces between them
    grams = len(words) - _GRAM + 1
    if grams <= 0:
        return 0.0
    return 1 - len(set(zip(*(words[place:] for place in range(_GRAM)), strict=False))) / grams


def _urls(text: str) -> int:
    small = text.lower()
    if "www." in small:
        return len(_URL.findall(small))
    return small.count("http://") + small.count("https://") if "://" in small else 0


def _html_remains(text: str) -> int:
    return len(_HTML.findall(text)) if "<" in text or "&" in text else 0


def _damaged(text: str) -> int:
    if text.isascii() or not _MAYBE_DAMAGED.search(text):
        return 0
    return sum(1 for _ in _DAMAGED.finditer(text))


def _unfinished(text: str) -> bool:
    end = text[-40:].rstrip(_CLOSING)
    return not end or end[-1] not in _ENDS


_OF_ONE_TEXT: dict[str, Callable[[str], float]] = {
    "urls": _urls,
    "html_remains": _html_remains,
    "damaged": _damaged,
    "repetition": _repetition,
    "unfinished": _unfinished,
}


class Texts(NamedTuple):
    """A column of large strings as it is looked at: the hash of each text, and whether there is one.

    `views` are the same texts, of which some are taken without a copy of the others.
    """

    column: pa.ChunkedArray
    views: pl.Series
    hashes: np.ndarray
    is_there: np.ndarray

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> "Texts":
        """The texts of this column."""
        views = pl.Series(column)
        is_there = column.is_valid().to_numpy() if column.null_count else np.ones(len(column), bool)
        return cls(column, views, views.hash().to_numpy(), is_there)


def near_hashes(texts: Texts, rate: float) -> np.ndarray:
    """Hashes that near-duplicates have in common, for texts whose beginning is in the sample.

    Their first letters, without case, digits and marks, are equal, and so are the first 32 bytes but for
    the case of A to Z, by whose hash the texts are sampled. Of less than 16 bytes, as names are, they are
    the same text. Nulls have no hash.
    """
    is_long = texts.is_there & (_lengths(texts.column) >= _MIN_NEAR_BYTES)
    heads = np.where(is_long, _head_hashes(texts.column), texts.hashes) if is_long.any() else texts.hashes
    chosen = np.flatnonzero(texts.is_there & below(heads, rate))
    found, long = heads[chosen], is_long[chosen]
    letters = [_letters_of(text[:_NEAR_CHARS]) for text in texts.views[chosen[long]].to_list()]
    lower = [xxhash.xxh3_64_intdigest(each.encode("utf-8", "replace")) for each in letters]
    found[long] = joined(found[long], np.array(lower, np.uint64))
    return found


def _letters_of(text: str) -> str:
    """The letters of a text in lower case."""
    return (text.translate(_NO_ASCII_LETTERS) if text.isascii() else _NO_LETTERS.sub("", text)).lower()


def _lengths(texts: pa.ChunkedArray) -> np.ndarray:
    """The bytes of each text."""
    return np.concatenate([np.empty(0, np.int64), *(np.diff(_ends(chunk)) for chunk in texts.chunks)])


def _ends(chunk: pa.Array) -> np.ndarray:
    """Where the first text of a chunk begins in its data, and where each of them ends."""
    return np.frombuffer(chunk.buffers()[1], np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]


def _head_hashes(texts: pa.ChunkedArray) -> np.ndarray:
    """A 64-bit hash of each text's first bytes without the bit that tells `a` from `A`."""
    found = [np.empty(0, np.uint64)]
    for chunk in texts.chunks:
        data, ends = chunk.buffers()[2], _ends(chunk)
        codes = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
        found.append(_mixed((_heads(codes, ends[:-1], ends[1:]) | _LOWER_CASE).T))
    return np.concatenate(found)


def _heads(codes: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The first 32 bytes of each text as four numbers, of shape (texts, 4); bytes beyond its end are 0."""
    if len(codes) < _HEAD_BYTES:
        codes = np.concatenate([codes, np.zeros(_HEAD_BYTES, np.uint8)])
    last = len(codes) - _HEAD_BYTES
    heads = _windows(codes)[np.minimum(starts, last)]
    beyond = np.flatnonzero(starts > last)
    if len(beyond):
        end = np.concatenate([codes[last:], np.zeros(_HEAD_BYTES, np.uint8)])
        heads[beyond] = _windows(end)[starts[beyond] - last]
    words = heads.view(np.uint64).reshape(-1, _HEAD_BYTES // _WORD)
    lengths = ends - starts
    short = np.flatnonzero(lengths < _HEAD_BYTES)
    left = np.clip(lengths[short, None] - np.arange(0, _HEAD_BYTES, _WORD), 0, _WORD)
    words[short] &= _FIRST_BYTES[left]
    return words


def _windows(codes: np.ndarray) -> np.ndarray:
    """The 32 bytes from each byte on, one value each; they lie over each other and are not copied."""
    return np.ndarray(len(codes) - _HEAD_BYTES + 1, f"V{_HEAD_BYTES}", codes, strides=1)


def _mixed(words: Sequence[np.ndarray]) -> np.ndarray:
    """One hash of the numbers at each place, every bit of it of all of theirs (the end of MurmurHash3)."""
    mixed = np.zeros(len(words[0]), np.uint64)
    for word in words:
        mixed = (mixed ^ word) * np.uint64(0xFF51AFD7ED558CCD)
        mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
        mixed ^= mixed >> np.uint64(33)
    return mixed


def piece_hashes(text: str) -> list[int]:
    """Hashes of the text's first sentences and lines, each once: what many texts share is boilerplate."""
    return sorted(pieces_by_hash(text))[:_MOST_PIECES]


def pieces_by_hash(text: str) -> dict[int, str]:
    """The sentences and lines that say enough to be boilerplate, in lower case."""
    pieces = {piece.strip().lower() for piece in _PIECES.split(text[:_FIRST_CHARS])}
    return {
        xxhash.xxh3_64_intdigest(piece.encode("utf-8", "replace")): piece
        for piece in pieces
        if len(piece) >= _MIN_PIECE_CHARS or (len(piece) >= _MIN_PIECE_CHARS // 2 and han_share(piece) > 0.5)
    }
