"""Parameters that every operator with a local model has: which model, where it runs, and how."""

import os
from pathlib import Path
from typing import Literal

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from dataflow_assets.operators.operator import Params


class ModelParams(Params):
    """Which model, and how it is run. How it is run changes no result beyond the rounding of floats."""

    model: str = Field(
        min_length=1,
        description="The model's folder, relative to the pipeline's; or its name on the Hugging Face hub, "
        "from where it is loaded at the first run.",
    )
    revision: str | None = Field(None, description="The commit, tag or branch of a model on the hub.")
    device: str = Field(
        "auto",
        pattern=r"^(auto|cpu|mps|cuda(:[0-9]+)?)$",
        description="`auto` (CUDA, else Apple's MPS, else CPU), `cuda`, `cuda:1`, `mps` or `cpu`.",
    )
    dtype: Literal["float32", "bfloat16", "float16"] = Field(
        "float32",
        description="Of weights and sums. `bfloat16` and `float16` are faster on GPUs, and round so that a "
        "result depends by about 1% on the rows beside it.",
    )
    tokens_per_pass: int | None = Field(
        None,
        ge=1,
        description="Tokens of one forward pass, padding included; halved when memory ends. Default: 4096 on "
        "a CPU, 8192 on MPS, 32768 on CUDA.",
    )
    _folder: str | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _finds_its_folder(self, info: ValidationInfo) -> "ModelParams":
        base_dir = (info.context or {}).get("base_dir") or "."
        folder = os.path.join(base_dir, os.path.expanduser(self.model))
        self._folder = os.path.realpath(folder) if os.path.isdir(folder) else None
        return self

    @property
    def folder(self) -> Path | None:
        """The model's folder, where `model` names one that is there."""
        return None if self._folder is None else Path(self._folder)

    @property
    def source(self) -> str:
        """What `transformers` loads: the folder, or the name on the hub."""
        return self._folder or self.model


class ReadingParams(ModelParams):
    """Parameters of a model that reads texts and writes none."""

    max_tokens: int | None = Field(
        None,
        ge=2,
        description="A longer text is cut to so many tokens. Default, and most: what the model can look at.",
    )
    compile: bool = Field(
        False, description="Compile the model by torch.compile: a slow start, then faster passes on GPUs."
    )


class TextColumnParams(ReadingParams):
    """Parameters of a model that reads one column."""

    column: str = Field("text", min_length=1, description="The text column.")
