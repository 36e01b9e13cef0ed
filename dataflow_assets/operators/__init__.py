"""Operators: what a step does to its rows."""

from dataflow_assets.operators.operator import (
    ColumnParams,
    DatasetOperator,
    Operator,
    Outcome,
    Params,
    RowErrors,
    RowOperator,
    TextFilter,
    TextMapper,
    TextOperator,
    split_by_reason,
)
from dataflow_assets.operators.registry import build_operator, find_operator, operators, register

__all__ = [
    "ColumnParams",
    "DatasetOperator",
    "Operator",
    "Outcome",
    "Params",
    "RowErrors",
    "RowOperator",
    "TextFilter",
    "TextMapper",
    "TextOperator",
    "build_operator",
    "find_operator",
    "operators",
    "register",
    "split_by_reason",
]
