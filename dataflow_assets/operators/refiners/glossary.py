"""Reads glossaries: terms and what is said for or about each."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import RootModel

from dataflow_assets.errors import ConfigError

Terms = Mapping[str, tuple[str, ...]]
_COLUMNS = ("term", "text")


class _YamlTerms(RootModel[dict[str, str | list[str]]]):
    """A YAML mapping of terms to one text or several."""


def read_glossary(path: Path) -> Terms:
    """The terms of a file, by its ending: .yaml or .yml, .csv, .jsonl; UTF-8.

    YAML maps each term to a text or a list of texts. CSV has the columns `term` and `text`, JSON Lines
    the keys, where `text` may be a list; a term on several lines has several texts. Raises ConfigError
    that names file and line.
    """
    if path.suffix in (".yaml", ".yml"):
        from dataflow_assets.serving.yaml_file import read_yaml

        return checked_terms(read_yaml(path, _YamlTerms).root, str(path))
    try:
        content = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"glossary {path} cannot be read as UTF-8 text: {error}") from error
    if path.suffix == ".csv":
        return checked_terms(_collected(_csv_rows(content, path)), str(path))
    if path.suffix == ".jsonl":
        return checked_terms(_collected(_json_rows(content, path)), str(path))
    raise ConfigError(f"glossary {path}: expected a file that ends in .yaml, .yml, .csv or .jsonl")


def checked_terms(terms: Mapping[str, str | list[str]], where: str) -> Terms:
    """The terms with their texts as tuples. Raises ConfigError for a blank term or one without text."""
    whole = {term: (texts,) if isinstance(texts, str) else tuple(texts) for term, texts in terms.items()}
    if not whole:
        raise ConfigError(f"glossary {where} has no term")
    for term, texts in whole.items():
        if not term.strip() or not texts:
            raise ConfigError(f"glossary {where}: the term {term!r} is blank or has no text")
    return whole


def _collected(rows: Iterable[tuple[str, list[str]]]) -> dict[str, str | list[str]]:
    terms: dict[str, str | list[str]] = {}
    for term, texts in rows:
        terms[term] = [*terms.get(term, []), *texts]
    return terms


def _csv_rows(content: str, path: Path) -> Iterable[tuple[str, list[str]]]:
    reader = csv.DictReader(io.StringIO(content))
    if not set(_COLUMNS) <= set(reader.fieldnames or ()):
        raise ConfigError(f"glossary {path}: expected the columns term and text, found {reader.fieldnames}")
    for row in reader:
        if row["term"] is None or row["text"] is None:
            raise ConfigError(f"{path}:{reader.line_num}: the line has too few columns")
        yield row["term"], [row["text"]]


def _json_rows(content: str, path: Path) -> Iterable[tuple[str, list[str]]]:
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ConfigError(f"{path}:{number}: no JSON: {error}") from error
        texts = row.get("text") if isinstance(row, dict) else None
        texts = [texts] if isinstance(texts, str) else texts
        if (
            not isinstance(row, dict)
            or not isinstance(row.get("term"), str)
            or not isinstance(texts, list)
            or not all(isinstance(text, str) for text in texts)
        ):
            raise ConfigError(f'{path}:{number}: expected {{"term": "…", "text": "…"}}, text also a list')
        yield row["term"], texts
