"""A tokenizer that lies on this machine, by file, folder or name."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import xxhash

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.splitting.sizes import Encoding
from dataflow_assets.optional_packages import require

_FILE = "tokenizer.json"


class TokenizerFile(NamedTuple):
    """A `tokenizer.json` and the hash of its content."""

    path: str
    digest: str


def find_tokenizer(name: str, base_dir: Path) -> TokenizerFile:
    """The file that `name` means: a `tokenizer.json`, a folder with one, or a model of the local cache.

    Nothing is downloaded. Raises ConfigError where there is none, or the package tokenizers is missing.
    """
    require({"tokenizers": "models"}, "counting tokens")
    path = base_dir / Path(name).expanduser()
    path = path / _FILE if path.is_dir() else path
    if not path.is_file():
        path = _cached(name)
    if path is None:
        raise ConfigError(
            f"there is no tokenizer {name!r}; expected a {_FILE}, a folder with one, or a model that is in "
            f"the cache of Hugging Face on this machine (`hf download {name} {_FILE}` brings it there)"
        )
    found = TokenizerFile(str(path), xxhash.xxh3_128_hexdigest(path.read_bytes()))
    try:
        encoder(found)
    except Exception as error:  # the library raises nothing more specific
        raise ConfigError(f"{path} is no tokenizer that the package tokenizers reads: {error}") from error
    return found


def _cached(name: str) -> Path | None:
    import huggingface_hub
    from huggingface_hub.errors import HFValidationError

    try:
        found = huggingface_hub.try_to_load_from_cache(name, _FILE)
    except HFValidationError:
        return None
    return Path(found) if isinstance(found, str) else None


@lru_cache(maxsize=4)
def encoder(file: TokenizerFile) -> Callable[[str], Encoding]:
    """What encodes a text without special tokens, truncation and padding; loaded once a process."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(file.path)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: tokenizer.encode(text, add_special_tokens=False)
