"""How long a piece of a text is: in characters, sentences or tokens."""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable
from typing import ClassVar, Protocol

from dataflow_assets.text.sentences import Span


class Size(ABC):
    """Sizes of parts of one text. `adds_up`: the size of a run is the sum of its parts."""

    adds_up: ClassVar[bool] = True

    def __init__(self, text: str) -> None:
        self._text = text

    @abstractmethod
    def of(self, span: Span) -> int:
        """The size of this part; an estimate where sizes do not add up."""

    def exact(self, span: Span) -> int:
        """The size of this part alone."""
        return self.of(span)


class Characters(Size):
    """Code points."""

    def of(self, span: Span) -> int:
        """Its length."""
        return span[1] - span[0]


class Sentences(Size):
    """Sentences: a part that is one, a line without an end mark, a code block; white space counts nothing."""

    def of(self, span: Span) -> int:
        """1 for a piece with any visible character."""
        return int(not self._text[slice(*span)].isspace())


class Encoding(Protocol):
    """What the package tokenizers says of a text."""

    @property
    def ids(self) -> list[int]:
        """The tokens."""
        ...

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """Where each token stands in the text, in characters."""
        ...


class Tokens(Size):
    """Tokens of a tokenizer, without special ones.

    The text is tokenized once for the estimates; a part alone may have other tokens at its ends.
    """

    adds_up = False

    def __init__(self, encode: Callable[[str], Encoding], text: str) -> None:
        super().__init__(text)
        self._encode = encode
        self._starts = sorted(start for start, _ in encode(text).offsets)

    def of(self, span: Span) -> int:
        """The tokens of the whole text that begin here."""
        return bisect_left(self._starts, span[1]) - bisect_left(self._starts, span[0])

    def exact(self, span: Span) -> int:
        """The tokens of this part alone."""
        return len(self._encode(self._text[slice(*span)]).ids)
