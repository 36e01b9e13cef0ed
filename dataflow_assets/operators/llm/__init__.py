"""Operators that ask a model about each row."""

from dataflow_assets.operators.llm import (
    answer,
    classify,
    conversation,
    embed,
    evolve,
    generate,
    judge,
    qa,
    rewriting,
    score,
    vote,
)

__all__ = [
    "answer",
    "classify",
    "conversation",
    "embed",
    "evolve",
    "generate",
    "judge",
    "qa",
    "rewriting",
    "score",
    "vote",
]
