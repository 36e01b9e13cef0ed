"""One text with its lines, sentences and words, each computed when first asked for, and once."""

import re
from collections.abc import Callable
from functools import cached_property
from typing import TypeVar, cast

from dataflow_assets.text.language import Language, han_share, language_of
from dataflow_assets.text.ngrams import Ngrams
from dataflow_assets.text.sentences import sentence_spans
from dataflow_assets.text.words import Words, fewest_words, words_of

_LINE_BREAKS = re.compile(r"\n+")
_PARAGRAPH_BREAKS = re.compile(r"\n{2,}")

T = TypeVar("T")


class Document:
    """What the rules of a filter measure; `language` chooses how words are found."""

    def __init__(self, text: str, language: Language | None = None) -> None:
        self.text = text
        self._language: Language | None = language
        self._made: dict[str, object] = {}

    @cached_property
    def language(self) -> Language:
        """The given language, else `zh` from a Han share of .2 on and `en` below."""
        if self._language is not None:
            return self._language
        if self.text.isascii():
            return "en"
        return language_of(self.text)

    @cached_property
    def han_share(self) -> float:
        """The Han characters among those that are not white space, 0 to 1."""
        return 0.0 if self.text.isascii() else han_share(self.text)

    @cached_property
    def lines(self) -> list[str]:
        """The lines by every line end that Unicode knows (`str.splitlines`), blank ones too."""
        return self.text.splitlines()

    @cached_property
    def written_lines(self) -> list[str]:
        r"""The pieces between `\n` that are not blank."""
        return [line for line in self.text.split("\n") if line and not line.isspace()]

    @cached_property
    def line_blocks(self) -> list[str]:
        """The pieces between runs of newlines; an empty one where the text begins or ends with one."""
        return _LINE_BREAKS.split(self.text)

    @cached_property
    def paragraphs(self) -> list[str]:
        """The pieces of the stripped text between runs of two or more newlines."""
        return _PARAGRAPH_BREAKS.split(self.text.strip())

    @cached_property
    def sentences(self) -> list[str]:
        """The sentences, stripped; blank ones left out. Cut as `chunk_text` cuts, in any language."""
        pieces = (self.text[start:end].strip() for start, end in sentence_spans(self.text))
        return [piece for piece in pieces if piece]

    @cached_property
    def plain_words(self) -> list[str]:
        """In English what is between white space, in Chinese jieba's words without punctuation marks."""
        if self.language == "en":
            return self.text.split()
        return [word for word in self.words.strings if any(map(str.isalnum, word))]

    @cached_property
    def words(self) -> Words:
        """The words and punctuation marks as datatrove finds them: spaCy's in English, jieba's in Chinese."""
        return words_of(self.text, self.language)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What `make` gives for this text, computed when first asked for under this name."""
        if name not in self._made:
            self._made[name] = make()
        return cast(T, self._made[name])

    @property
    def fewest_words(self) -> int:
        """A number that the words are not fewer than, at less cost than finding them."""
        return fewest_words(self.text, self.language)

    @cached_property
    def ngrams(self) -> Ngrams:
        """The runs of 2 and more words that come again."""
        return Ngrams(self.words)
