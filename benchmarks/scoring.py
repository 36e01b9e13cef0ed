"""IFD of real texts by a local model: whole batches against one row at a time, at equal scores.

    python -m benchmarks.scoring [--rows 512] [--model FOLDER] [--gpu-model FOLDER]

On one core of the CPU: CPU-seconds of both ways, the model loaded and warm, and of the batches the
forward passes and the share of padding. One row at a time is what the paper's code does: two forward
passes a row, each with all logits. Default model: the tests' random GPT-2 of two layers. Where there
is a GPU, the same on it in bfloat16, with rows and tokens a second and the share of the card's peak.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa

from dataflow_assets.batch import table_of
from dataflow_assets.operators import build_operator
from dataflow_assets.operators.models.instruction_difficulty import ScoreIfd
from dataflow_assets.operators.models.language_model import LanguageModel
from dataflow_assets_tests.operators.models.one_by_one import loaded
from dataflow_assets_tests.operators.models.tiny_models import write_tiny_gpt2

# Dense bfloat16 of the makers' data sheets, in 10^12 a second.
_PEAKS = {"H200": 989, "H100": 989, "A100": 312, "L40S": 362, "L4": 121, "A10": 125, "4090": 165}


def instructions(count: int) -> pa.Table:
    """Paragraphs of the shipped sample as answers, of 40 to 1,500 characters, each after another's begin."""
    data = (files("dataflow_assets") / "pipelines" / "data" / "text_clean_sample.jsonl").read_bytes()
    texts = [json.loads(line)["text"] for line in data.splitlines()]
    parts = [
        text[place : place + 40 + place * 7919 % 1460]
        for text in texts
        if isinstance(text, str)
        for place in range(0, max(1, len(text) - 60), 700)
    ]
    answers = [parts[row % len(parts)] for row in range(count)]
    asked = [parts[(row * 31 + 7) % len(parts)][:120] for row in range(count)]
    schema = {"row_id": "string", "instruction": "string", "answer": "string"}
    columns = {"row_id": [f"r{row}" for row in range(count)], "instruction": asked, "answer": answers}
    return table_of(columns, schema)  # pyright: ignore[reportArgumentType]


def by_batches(operator: ScoreIfd, rows: pa.Table, batch_rows: int) -> list[float | None]:
    """The scores, by the operator."""
    starts = range(0, rows.num_rows, batch_rows)
    outcomes = [operator.apply(rows.slice(start, batch_rows)) for start in starts]
    return [score for outcome in outcomes for score in outcome.kept["ifd"].to_pylist()]


def one_by_one(model: Any, pairs: list[tuple[list[int], list[int]]], device: str) -> Iterator[float | None]:
    """The scores of prompts and answers in tokens, each row alone, with the model's own loss."""
    import torch

    def perplexity(tokens: list[int], begin: int) -> float:
        ids = torch.tensor([tokens], device=device)
        labels = ids.clone()
        labels[0, :begin] = -100
        with torch.no_grad():
            return float(model(ids, labels=labels).loss.exp())

    for prompt, answer in pairs:
        enough = len(answer) > 1
        yield perplexity(prompt + answer, len(prompt)) / perplexity(answer, 0) if enough else None


def timed(
    clock: Callable[[], float], work: Callable[[], list[float | None]]
) -> tuple[float, list[float | None]]:
    """Seconds by this clock, and the result; done once before, so that everything is warm."""
    started = clock()
    found = work()
    return clock() - started, found


def compared(
    folder: Path, rows: pa.Table, device: str, dtype: str, clock: Callable[[], float]
) -> dict[str, Any]:
    """Both ways on one device."""
    operator = build_operator("score_ifd", {"model": str(folder), "device": device, "dtype": dtype})
    assert isinstance(operator, ScoreIfd)
    by_batches(operator, rows.slice(0, 32), 32)
    scorer: LanguageModel = operator.model()
    scorer.passes = type(scorer.passes)(scorer.passes.tokens_per_pass)
    batches_s, found = timed(clock, lambda: by_batches(operator, rows, 256))
    pairs = [(pair.prompt, pair.answer) for pair in operator._pairs(scorer, rows.to_pylist())]
    model = loaded("AutoModelForCausalLM", folder)[0].to(device, scorer._model.dtype)
    list(one_by_one(model, pairs[:16], device))
    single_s, expected = timed(clock, lambda: list(one_by_one(model, pairs, device)))
    counts = scorer.passes.counts
    differences = [abs(a / b - 1) for a, b in zip(found, expected, strict=True) if a is not None and b]
    return {
        "rows": rows.num_rows,
        "batches_s": round(batches_s, 3),
        "one_by_one_s": round(single_s, 3),
        "ratio": round(single_s / batches_s, 2),
        "passes": counts.passes,
        "passes_share": round(counts.passes / (2 * rows.num_rows), 4),
        "padded_per_real_token": round(counts.padded_tokens / counts.real_tokens, 4),
        "largest_difference": f"{max(differences):.1e}",
        "rows_per_s": round(rows.num_rows / batches_s, 1),
        "tokens_per_s": round(counts.real_tokens / batches_s),
        "parameters": sum(weights.numel() for weights in model.parameters()),
    }


def on_the_gpu(folder: Path, rows: pa.Table) -> dict[str, Any] | str:
    """The same by wall time, with the share of the card's peak; or why not."""
    import torch

    if not torch.cuda.is_available():
        return "no GPU here: nothing was measured on one"

    def clock() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    found = compared(folder, rows, "cuda", "bfloat16", clock)
    card = torch.cuda.get_device_name()
    peak = next((peak for name, peak in _PEAKS.items() if name in card), None)
    used = 2 * found["parameters"] * found["tokens_per_s"] / 1e12
    share = "unknown" if peak is None else round(used / peak, 4)
    return {"card": card, **found, "tera_operations_per_s": round(used, 2), "share_of_peak": share}


def main() -> None:
    """Prints one JSON object."""
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--gpu-model", type=Path)
    parser.add_argument("--gpu-rows", type=int, default=8192)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or write_tiny_gpt2(Path(folder))
        cpu = compared(model, instructions(options.rows), "cpu", "float32", time.process_time)
        gpu = on_the_gpu(options.gpu_model or model, instructions(options.gpu_rows))
        print(json.dumps({"cpu": cpu, "gpu": gpu}, indent=2))


if __name__ == "__main__":
    main()
