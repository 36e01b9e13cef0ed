"""Filters documents by the sections that they must have."""

from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from dataflow_assets.operators.operator import ColumnParams, TextFilter
from dataflow_assets.operators.registry import register


class Section(BaseModel):
    """A part of a document and the phrases by one of which it is known."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", description="What the section is called in the reason.")
    any_of: list[str] = Field(min_length=1, description="Phrases, one of which opens the section.")

    @field_validator("any_of")
    @classmethod
    def _not_empty(cls, phrases: list[str]) -> list[str]:
        if not all(phrases):
            raise ValueError("a phrase is empty; it would be found everywhere")
        return phrases


class _FilterSectionsParams(ColumnParams):
    sections: list[Section] = Field(min_length=1, description="The sections, in the order of a document.")
    ordered: bool = Field(True, description="Whether a section must begin behind the one before.")

    @model_validator(mode="after")
    def _names_differ(self) -> "_FilterSectionsParams":
        names = [section.name for section in self.sections]
        if len(set(names)) < len(names):
            raise ValueError("two sections have the same name")
        return self


class _Found(NamedTuple):
    """Where the phrase that opens a section begins and ends."""

    start: int
    end: int


@register
class FilterSections(TextFilter):
    """Keeps the documents that have all sections, in their order.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string). A
    section is there when one of its phrases is; with `ordered`, behind the phrase of the section
    before it. Phrases are compared as they are, after nothing: normalize white space first. Rejected
    rows have the reason `missing_<section>`, or `misplaced_<section>` where the phrase stands only
    before its place.

    Example:
        - name: whole
          type: filter_sections
          params:
            sections:
              - {name: facts, any_of: [经审理查明, 本院查明]}
              - {name: verdict, any_of: [判决如下]}
    """

    name = "filter_sections"
    Params = _FilterSectionsParams
    params: _FilterSectionsParams

    def reason(self, text: str) -> str | None:
        """`missing_<section>`, `misplaced_<section>`, or None."""
        behind = 0
        for section in self.params.sections:
            found = _first(text, section.any_of, behind if self.params.ordered else 0)
            if found is None:
                is_elsewhere = _first(text, section.any_of, 0) is not None
                return f"{'misplaced' if is_elsewhere else 'missing'}_{section.name}"
            behind = found.end
        return None


def _first(text: str, phrases: list[str], behind: int) -> _Found | None:
    """The first of the phrases at or behind a position; of two at one place the longer."""
    places = [(text.find(phrase, behind), -len(phrase)) for phrase in phrases]
    found = [place for place in places if place[0] >= 0]
    if not found:
        return None
    start, length = min(found)
    return _Found(start, start - length)
