"""Names of persons, found by Microsoft Presidio with a spaCy model."""

import importlib.util
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from dataflow_assets.errors import ConfigError
from dataflow_assets.optional_packages import require

PERSON = "person"
PERSON_TAG = "<PERSON>"


class PersonNames:
    """Finds names of persons in texts of one language.

    Raises ConfigError where Presidio or the model is not installed; nothing is ever downloaded.
    """

    def __init__(self, language: str, model: str) -> None:
        require({"presidio_analyzer": "pii"}, "kind `person`")
        if importlib.util.find_spec(model) is None:
            raise ConfigError(
                f"names of persons need the spaCy model {model!r}, which is not installed; "
                f"run `python -m spacy download {model}`, or name another in `names_model`"
            )
        self._language = language
        self._model = model

    @cached_property
    def _analyzer(self) -> Any:
        from presidio_analyzer import AnalyzerEngine  # pyright: ignore[reportMissingImports]
        from presidio_analyzer.nlp_engine import NlpEngineProvider  # pyright: ignore[reportMissingImports]

        model = {"lang_code": self._language, "model_name": self._model}
        provider = NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": [model]})
        return AnalyzerEngine(nlp_engine=provider.create_engine(), supported_languages=[self._language])

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end of each name, in the order of the text."""
        found = self._analyzer.analyze(text=text, entities=["PERSON"], language=self._language)
        yield from sorted((name.start, name.end) for name in found)
