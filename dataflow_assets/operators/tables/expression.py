"""A small language of conditions on columns: parsed, typed against the columns, run on Arrow.

It is written like Python and read by Python's parser, but nothing of it is ever executed: each kind of
node has a meaning here, and any other is refused. Null is unknown, as in SQL: `null > 3` is null,
`null or true` is true.
"""

import ast
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import ColumnType, Schema, json_value
from dataflow_assets.errors import WrongType
from dataflow_assets.operators.table_rows import is_unicode

Kind = Literal["text", "number", "bool", "json", "null", "any"]
Value = Any  # a column or a scalar of Arrow
_MAX_CHARS = 10_000
_MAX_INT64 = 2**63
_KINDS: dict[ColumnType, Kind] = {
    "string": "text",
    "int64": "number",
    "float64": "number",
    "bool": "bool",
    "json": "json",
}
_ARROW: dict[Kind, pa.DataType] = {
    "text": pa.large_string(),
    "number": pa.float64(),
    "bool": pa.bool_(),
    "json": pa.large_string(),
    "null": pa.null(),
    "any": pa.null(),
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}
_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "add_checked",
    ast.Sub: "subtract_checked",
    ast.Mult: "multiply_checked",
    ast.Div: "divide_checked",
}


class ExpressionError(ValueError):
    """The expression is not of the language, or its types do not fit; the message says where."""


@dataclass(frozen=True)
class Typed:
    """A part of an expression: the kind of its values, and how they come from a table.

    `constant` holds the value of a literal, in a tuple.
    """

    kind: Kind
    values: Callable[[pa.Table], Value]
    constant: tuple[object] | None = None


def parsed(text: str) -> ast.expr:
    """The tree of an expression. Raises ExpressionError for what Python cannot parse."""
    if len(text) > _MAX_CHARS:
        raise ExpressionError(f"the expression has {len(text):,} characters, at most {_MAX_CHARS:,} are read")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the backslashes in patterns
            return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"{error.msg} at character {error.offset}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"it cannot be parsed: {error or 'it is nested too deeply'}") from error


def columns_of(tree: ast.expr) -> list[str]:
    """The columns that the expression reads, in order."""
    reader = _Reader()
    reader.typed(tree)
    return list(reader.seen)


def condition(tree: ast.expr, schema: Schema | None = None) -> Typed:
    """The expression as a condition on tables with these columns.

    Without a schema it is only checked: a column may be there and of any kind.
    Raises ExpressionError where it is no condition or its types do not fit.
    """
    try:
        return _as_kind(_Reader(schema).typed(tree), "bool", tree)
    except RecursionError as error:
        raise ExpressionError("it is nested too deeply") from error


class _Reader:
    """Gives each node of the tree its type."""

    def __init__(self, schema: Schema | None = None) -> None:
        self._schema = schema
        self.seen: dict[str, None] = {}

    def typed(self, node: ast.expr) -> Typed:
        if type(node) not in _NODES:
            raise _error(node, f"{ast.unparse(node)!r} is not of the language")
        return getattr(self, _NODES[type(node)])(node)

    def _constant(self, node: ast.Constant) -> Typed:
        value = node.value
        if isinstance(value, bool):
            return _literal("bool", value, pa.bool_())
        if isinstance(value, int):
            if not -_MAX_INT64 <= value < _MAX_INT64:
                raise _error(node, f"{value} has more than 64 bits")
            return _literal("number", value, pa.int64())
        if isinstance(value, float):
            return _literal("number", value, pa.float64())
        if isinstance(value, str) and is_unicode(value):
            return _literal("text", value, pa.large_string())
        if value is None:
            return _literal("null", None, pa.null())
        raise _error(node, f"{ast.unparse(node)} is no text, number, true, false or null")

    def _name(self, node: ast.Name) -> Typed:
        words = {"true": True, "false": False, "null": None}
        if node.id in words:
            return self._constant(ast.copy_location(ast.Constant(words[node.id]), node))
        return self._column(node, node.id)

    def _column(self, node: ast.expr, name: str) -> Typed:
        self.seen[name] = None
        if self._schema is None:
            return Typed("any", lambda table: table[name])
        if name not in self._schema:
            raise _error(node, f"there is no column {name!r} (there are: {', '.join(self._schema)})")
        return Typed(_KINDS[self._schema[name]], lambda table: table[name])

    def _boolop(self, node: ast.BoolOp) -> Typed:
        function = pc.and_kleene if isinstance(node.op, ast.And) else pc.or_kleene
        parts = [_as_kind(self.typed(value), "bool", value) for value in node.values]
        return Typed("bool", lambda table: reduce(function, (part.values(table) for part in parts)))

    def _unaryop(self, node: ast.UnaryOp) -> Typed:
        inner = self.typed(node.operand)
        if isinstance(node.op, ast.Not):
            return _called("bool", pc.invert, _as_kind(inner, "bool", node.operand))
        if not isinstance(node.op, ast.USub):
            raise _error(node, f"{ast.unparse(node)!r} is not of the language")
        if inner.constant is not None and isinstance(inner.constant[0], int | float):
            return self._constant(ast.copy_location(ast.Constant(-inner.constant[0]), node))
        return _called("number", pc.negate_checked, _as_kind(inner, "number", node.operand))

    def _binop(self, node: ast.BinOp) -> Typed:
        name = _ARITHMETIC.get(type(node.op))
        if name is None:
            raise _error(node, f"{ast.unparse(node)!r} is not of the language, which has + - * /")
        left, right = (_as_kind(self.typed(side), "number", side) for side in (node.left, node.right))
        if isinstance(node.op, ast.Div):
            left, right = _as_float(left), _as_float(right)
        return _called("number", getattr(pc, name), left, right)

    def _compare(self, node: ast.Compare) -> Typed:
        sides = [node.left, *node.comparators]
        parts = [
            self._compared(left, operator, right)
            for left, operator, right in zip(sides, node.ops, sides[1:], strict=False)
        ]
        return Typed("bool", lambda table: reduce(pc.and_kleene, (part.values(table) for part in parts)))

    def _compared(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Typed:
        if isinstance(operator, ast.Is | ast.IsNot):
            return self._is_null(left, operator, right)
        if isinstance(operator, ast.In | ast.NotIn):
            found = self._in(left, right)
            return _called("bool", pc.invert, found) if isinstance(operator, ast.NotIn) else found
        first, second = self._alike(left, right)
        if first.kind in ("bool", "json") and not isinstance(operator, ast.Eq | ast.NotEq):
            raise _error(left, f"{ast.unparse(left)!r} has no order; only == and != are for it")
        return _called("bool", getattr(pc, _COMPARISONS[type(operator)]), first, second)

    def _is_null(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Typed:
        if self.typed(right).kind != "null":
            raise _error(right, f"`is` is for null alone; write == {ast.unparse(right)}")
        inner = self.typed(left)
        return _called("bool", pc.is_null if isinstance(operator, ast.Is) else pc.is_valid, inner)

    def _in(self, left: ast.expr, right: ast.expr) -> Typed:
        """Of a list of literals, or a literal text within a text."""
        if not isinstance(right, ast.List | ast.Tuple | ast.Set):
            return self._contains([right, left])
        members = [self.typed(member) for member in right.elts]
        if not members or any(member.constant is None for member in members):
            raise _error(right, "after `in` comes a list of texts or numbers, e.g. [1, 2], or a text")
        kind = members[0].kind
        if kind == "null" or any(member.kind != kind for member in members):
            raise _error(right, f"{ast.unparse(right)} mixes types, or holds null")
        value = _as_kind(self.typed(left), kind, left)
        of_floats = any(isinstance(_value_of(member), float) for member in members)
        values = pa.array([_value_of(member) for member in members], pa.float64() if of_floats else None)
        return Typed("bool", lambda table: _is_in(value.values(table), values))

    def _alike(self, left: ast.expr, right: ast.expr) -> tuple[Typed, Typed]:
        """Both sides of a comparison as one kind."""
        first, second = self.typed(left), self.typed(right)
        for side, node in ((first, left), (second, right)):
            if side.kind == "null":
                raise _error(node, "nothing equals null, which is unknown; write `is null`")
        kind = second.kind if first.kind in ("json", "any") else first.kind
        return _as_kind(first, kind, left), _as_kind(second, kind, right)

    def _call(self, node: ast.Call) -> Typed:
        name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        if name not in FUNCTIONS:
            raise _error(node, f"there is no function {name!r}; there are: {', '.join(FUNCTIONS)}")
        if node.keywords or len(node.args) != len(FUNCTIONS[name]):
            raise _error(node, f"it is called as {name}({', '.join(FUNCTIONS[name])})")
        return getattr(self, f"_{name}")(node.args)

    def _col(self, arguments: Sequence[ast.expr]) -> Typed:
        return self._column(arguments[0], self._literal_text(arguments[0]))

    def _len(self, arguments: Sequence[ast.expr]) -> Typed:
        return _called("number", _length, self._text(arguments[0]))

    def _lower(self, arguments: Sequence[ast.expr]) -> Typed:
        return _called("text", pc.utf8_lower, self._text(arguments[0]))

    def _upper(self, arguments: Sequence[ast.expr]) -> Typed:
        return _called("text", pc.utf8_upper, self._text(arguments[0]))

    def _strip(self, arguments: Sequence[ast.expr]) -> Typed:
        return _called("text", pc.utf8_trim_whitespace, self._text(arguments[0]))

    def _abs(self, arguments: Sequence[ast.expr]) -> Typed:
        return _called("number", pc.abs_checked, _as_kind(self.typed(arguments[0]), "number", arguments[0]))

    def _contains(self, arguments: Sequence[ast.expr]) -> Typed:
        return self._matched(pc.match_substring, arguments)

    def _startswith(self, arguments: Sequence[ast.expr]) -> Typed:
        return self._matched(pc.starts_with, arguments)

    def _endswith(self, arguments: Sequence[ast.expr]) -> Typed:
        return self._matched(pc.ends_with, arguments)

    def _matches(self, arguments: Sequence[ast.expr]) -> Typed:
        pattern = self._literal_text(arguments[1])
        try:
            pc.match_substring_regex(pa.array([""]), pattern)
        except pa.ArrowInvalid as error:
            raise _error(arguments[1], f"the pattern {pattern!r} is not of RE2: {error}") from error
        return self._matched(pc.match_substring_regex, arguments)

    def _matched(self, function: Callable[..., Value], arguments: Sequence[ast.expr]) -> Typed:
        text, wanted = self._text(arguments[0]), self._literal_text(arguments[1])
        return Typed("bool", lambda table: function(text.values(table), wanted))

    def _text(self, node: ast.expr) -> Typed:
        return _as_kind(self.typed(node), "text", node)

    def _literal_text(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_unicode(node.value):
            return node.value
        raise _error(node, f"{ast.unparse(node)!r} stands where a text in quotes must be")


_NODES: dict[type[ast.expr], str] = {
    ast.Constant: "_constant",
    ast.Name: "_name",
    ast.BoolOp: "_boolop",
    ast.UnaryOp: "_unaryop",
    ast.BinOp: "_binop",
    ast.Compare: "_compare",
    ast.Call: "_call",
}
FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "len": ("text",),
    "lower": ("text",),
    "upper": ("text",),
    "strip": ("text",),
    "contains": ("text", "'words'"),
    "startswith": ("text", "'words'"),
    "endswith": ("text", "'words'"),
    "matches": ("text", "'pattern'"),
    "abs": ("number",),
    "col": ("'name'",),
}


def _error(node: ast.expr, message: str) -> ExpressionError:
    return ExpressionError(f"{message} (at character {node.col_offset + 1})")


def _literal(kind: Kind, value: object, arrow: pa.DataType) -> Typed:
    scalar = pa.scalar(value, arrow)
    return Typed(kind, lambda table: scalar, (value,))


def _value_of(part: Typed) -> object:
    assert part.constant is not None
    return part.constant[0]


def _called(kind: Kind, function: Callable[..., Value], *parts: Typed) -> Typed:
    return Typed(kind, lambda table: function(*(part.values(table) for part in parts)))


def _as_kind(part: Typed, kind: Kind, node: ast.expr) -> Typed:
    """The part, if it is of this kind or may be: null is of every kind, a JSON value shows what it is."""
    if part.kind == kind:
        return part
    if part.kind == "null":
        return Typed(kind, lambda table: pa.scalar(None, _ARROW[kind]))
    if part.kind == "any" or kind == "any":
        return Typed(kind, part.values)
    if part.kind == "json" and kind != "null":
        return Typed(kind, lambda table: _decoded(part.values(table), kind, ast.unparse(node)))
    raise _error(node, f"{ast.unparse(node)!r} is a {part.kind}, expected a {kind}")


def _as_float(part: Typed) -> Typed:
    return _called("number", lambda values: values.cast(pa.float64()), part)


def _length(texts: Value) -> Value:
    return pc.utf8_length(texts).cast(pa.int64())


def _is_in(values: Value, wanted: pa.Array) -> Value:
    """Null where the value is null."""
    if pa.types.is_floating(values.type) and not pa.types.is_floating(wanted.type):
        wanted = wanted.cast(pa.float64())
    if pa.types.is_floating(wanted.type) and not pa.types.is_floating(values.type):
        values = values.cast(pa.float64())
    found = pc.is_in(values, wanted.cast(values.type))
    return pc.if_else(pc.is_valid(values), found, pa.scalar(None, pa.bool_()))


def _decoded(texts: Value, kind: Kind, name: str) -> Value:
    """The values of JSON, all of one kind. Raises WrongType."""
    wanted = {"text": str, "bool": bool, "number": (int, float)}[kind]
    values = [None if text is None else json_value(text) for text in texts.to_pylist()]
    for value in values:
        if value is None:
            continue
        if not isinstance(value, wanted) or (kind == "number" and isinstance(value, bool)):
            raise WrongType(f"wrong type: {name} holds {type(value).__name__}, expected a {kind}")
        if isinstance(value, str) and not is_unicode(value):
            raise WrongType(f"wrong type: {name} holds a lone surrogate; `fix_unicode` repairs it")
    if kind == "number" and all(value is None or isinstance(value, int) for value in values):
        return pa.chunked_array([pa.array(values, pa.int64())])
    return pa.chunked_array([pa.array(values, _ARROW[kind])])
