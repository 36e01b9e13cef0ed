"""Turns a text into a vector by a local model."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
from pydantic import Field

from dataflow_assets.batch import Schema
from dataflow_assets.errors import RowError
from dataflow_assets.operators.models.model_operator import ModelOperator, Texts, Values
from dataflow_assets.operators.models.model_params import TextColumnParams
from dataflow_assets.operators.models.text_encoder import TextEncoder
from dataflow_assets.operators.registry import register

_POOLING_FILE = "1_Pooling/config.json"
_LENGTH_FILE = "sentence_bert_config.json"
_POOLINGS = {"pooling_mode_cls_token": "cls", "pooling_mode_lasttoken": "last"}


class _EmbedTextParams(TextColumnParams):
    output_column: str = Field("embedding", min_length=1, description="The column for the vector.")
    prefix: str = Field("", description="Put before each text, for models that want it, as `query: `.")
    pooling: Literal["auto", "mean", "cls", "last"] = Field(
        "auto",
        description="How a text's vector is made of those of its tokens: their mean, the first, or the "
        "last. `auto`: what the model's folder says (sentence-transformers), else the mean.",
    )
    normalize: bool = Field(True, description="Scale each vector to length 1.")


@register
class EmbedText(ModelOperator[TextEncoder]):
    """Adds the vector of a text, made by a local embedding model.

    Grain: one row in, one row out; order and ids unchanged. Reads `column`. Writes `output_column`
    (JSON list of 32-bit floats, in their shortest form) and `<output_column>_truncated` (bool: the text
    was longer than `max_tokens`, by default what the model was made for). The empty text has a vector
    where the model puts tokens around a text; without any token it is null. Null fails as
    MissingValue, a value that is not text as WrongType, a text too large for the device's memory as
    OutOfMemory. `drop_semantic_duplicates` and `select_diverse` read these vectors; `embed` asks a
    server for them. Source of the rule: Sentence-BERT (Reimers and Gurevych 2019). Needs the extra
    `models`.

    Example:
        - {name: embedded, type: embed_text, params: {model: sentence-transformers/all-MiniLM-L6-v2}}
    """

    name = "embed_text"
    Params = _EmbedTextParams
    params: _EmbedTextParams

    def needed_columns(self) -> list[str]:
        """The text column."""
        return [self.params.column]

    def writes(self) -> Schema:
        """The vector."""
        out = self.params.output_column
        return {out: "json", f"{out}_truncated": "bool"}

    def load(self) -> TextEncoder:
        """The embedding model."""
        most = self._setting(_LENGTH_FILE).get("max_seq_length")
        pooling = self.params.pooling
        if pooling == "auto":
            said = self._setting(_POOLING_FILE)
            pooling = next((name for key, name in _POOLINGS.items() if said.get(key)), "mean")

        def vectors(output: Any, mask: Any) -> Any:
            return _pooled(output.last_hidden_state.float(), mask, pooling, self.params.normalize)

        return TextEncoder("AutoModel", self.params, vectors, most if isinstance(most, int) else None)

    def results(
        self, model: TextEncoder, rows: Sequence[Texts], row_ids: Sequence[str]
    ) -> list[Values | RowError]:
        """The vector of each row."""
        read = model.read([self.params.prefix + (text or "") for (text,) in rows])
        return [
            vector if isinstance(vector, RowError) else (_shortest(vector), text.is_cut)
            for vector, text in zip(model.numbers(read), read, strict=True)
        ]

    def _setting(self, file: str) -> dict[str, object]:
        """What a file of sentence-transformers beside the model says; nothing where it is not there."""
        from transformers.utils.hub import cached_file

        path = cached_file(
            self.params.source,
            file,
            revision=self.params.revision or "main",
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        return {} if path is None else json.loads(Path(path).read_text(encoding="utf-8"))


def _pooled(hidden: Any, mask: Any, pooling: str, normalize: bool) -> Any:
    import torch

    if pooling == "mean":
        weights = mask.unsqueeze(-1)
        vectors = (hidden * weights).sum(1) / weights.sum(1)
    elif pooling == "cls":
        vectors = hidden[:, 0]
    else:
        vectors = hidden[torch.arange(len(hidden), device=hidden.device), mask.sum(1) - 1]
    return torch.nn.functional.normalize(vectors, dim=-1) if normalize else vectors


def _shortest(vector: list[float] | None) -> object:
    """The numbers with as many digits as 32 bits have."""
    if vector is None:
        return None
    return orjson.loads(orjson.dumps(np.asarray(vector, np.float32), option=orjson.OPT_SERIALIZE_NUMPY))
