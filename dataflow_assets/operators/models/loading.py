"""Loads a `transformers` model: where it runs, in which precision, how much it can look at, what it is."""

import gc
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import xxhash

from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets.operators.models.forward_passes import ForwardPasses
from dataflow_assets.operators.models.model_params import ModelParams

_NO_LIMIT = 1_000_000
_TOKENS_PER_PASS = {"cpu": 4096, "mps": 8192, "cuda": 32768}
_SAMPLE_BYTES = 1 << 16
_SAMPLES = 16


class LoadedModel(NamedTuple):
    """A model that is ready to be run, and what it is run with; `most_tokens` is what it can look at."""

    model: Any
    tokenizer: Any
    device: str
    most_tokens: int
    passes: ForwardPasses


def loaded_model(kind: str, params: ModelParams) -> LoadedModel:
    """The model as `transformers`' class of this name has it. Raises RunError."""
    device = _device_of(params)
    tokenizer = _tokenizer_of(params)
    model = _model_of(kind, params, device)
    return LoadedModel(model, tokenizer, device, most_tokens(model, tokenizer), _passes_of(params, device))


def check_model_is_there(name: str, params: ModelParams) -> None:
    """Raises ConfigError where `model` can only be a folder, and there is none or it holds no model."""
    if params.folder is not None:
        if not (params.folder / "config.json").is_file():
            raise ConfigError(
                f"operator {name!r}, parameter 'model': the folder {params.model!r} has no config.json; "
                "expected a model as `save_pretrained` writes it"
            )
    elif params.model.startswith((".", "/", "~")) or params.model.count("/") > 1:
        raise ConfigError(
            f"operator {name!r}, parameter 'model': there is no folder {params.model!r}; a name on the "
            "hub is `owner/name`"
        )


def model_identity(params: ModelParams) -> Mapping[str, object]:
    """What tells a model from another: its files where it has a folder, else its name.

    Of a large file its size, its end and 16 samples count: to read all of it would cost seconds.
    """
    if params.folder is None:
        return {"model": params.model, "revision": params.revision}
    found = {path.relative_to(params.folder).as_posix(): path for path in params.folder.rglob("*")}
    return {
        "files": {
            name: _sampled(path)
            for name, path in sorted(found.items())
            if path.is_file() and not name.startswith(".") and path.suffix != ".md"
        }
    }


def _sampled(path: Path) -> str:
    size = path.stat().st_size
    digest = xxhash.xxh3_128(b"%d" % size)
    with open(path, "rb") as file:
        for place in sorted({size * part // _SAMPLES for part in range(_SAMPLES)}):
            file.seek(place)
            digest.update(file.read(_SAMPLE_BYTES))
        file.seek(max(0, size - _SAMPLE_BYTES))
        digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


def _device_of(params: ModelParams) -> str:
    """The device that is meant. Raises RunError where it is not there."""
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if params.device == "auto":
        return next(kind for kind, is_there in there.items() if is_there)
    kind, _, number = params.device.partition(":")
    if not there[kind] or (kind == "cuda" and int(number or 0) >= torch.cuda.device_count()):
        has = ", ".join(kind for kind, is_there in there.items() if is_there)
        raise RunError(f"device {params.device!r} is not there; this machine has {has}: set `device: auto`")
    return params.device


def _tokenizer_of(params: ModelParams) -> Any:
    """The model's tokenizer. Raises RunError."""
    from transformers import AutoTokenizer

    return _read(AutoTokenizer, params)


def _model_of(kind: str, params: ModelParams, device: str) -> Any:
    """The model on its device. Raises RunError, also where it lacks weights."""
    import torch
    import transformers
    from transformers.utils import logging

    logging.disable_progress_bar()
    how = {"dtype": getattr(torch, params.dtype), "output_loading_info": True}
    model, info = _read(getattr(transformers, kind), params, **how)
    missing = [name for name in sorted(info["missing_keys"]) if kind != "AutoModel" or not _is_pooler(name)]
    if missing:
        raise RunError(
            f"the model {params.model!r} has no weights for {', '.join(missing[:3])}, which would be random "
            f"numbers; set `model` to one that was trained as what `transformers` calls {kind}"
        )
    return model.to(device).eval()


def _is_pooler(name: str) -> bool:
    """Whether these weights are behind the last hidden states, which are all that is read of an AutoModel."""
    return "pooler" in name.split(".")


def _read(kind: Any, params: ModelParams, **how: object) -> Any:
    revision = {} if params.revision is None or params.folder is not None else {"revision": params.revision}
    try:
        return kind.from_pretrained(params.source, **revision, **how)
    except Exception as error:  # broken files raise whatever reads them: safetensors, pickle, JSON
        raise RunError(
            f"the model {params.model!r} cannot be loaded: {error}; set `model` to a folder with a model, or "
            "to a name on a hub that can be reached"
        ) from error


def _passes_of(params: ModelParams, device: str) -> ForwardPasses:
    """The forward passes of a model on this device."""
    kind = device.partition(":")[0]
    return ForwardPasses(params.tokens_per_pass or _TOKENS_PER_PASS[kind], free_memory)


def free_memory() -> None:
    """Gives memory back that nobody uses."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()


def most_tokens(model: Any, tokenizer: Any) -> int:
    """How many tokens the model can look at."""
    limits = [getattr(model.config, "max_position_embeddings", None), tokenizer.model_max_length]
    positions = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
    taken = getattr(positions, "padding_idx", None)
    if taken is not None and isinstance(limits[0], int):
        limits[0] -= taken + 1  # RoBERTa counts positions from behind the padding's
    return min([limit for limit in limits if isinstance(limit, int) and limit > 0] + [_NO_LIMIT])
