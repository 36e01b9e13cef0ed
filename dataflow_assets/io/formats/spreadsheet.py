"""Texts that a spreadsheet would run as formulas, made plain: for looking at, not for training."""

import pyarrow as pa
import pyarrow.compute as pc

# The characters are those of OWASP's page on CSV injection, with their full-width forms.
_FORMULA = "^([=+\\-@\t\r\n＝＋－＠])"


def without_formulas(table: pa.Table) -> pa.Table:
    """The table with an apostrophe before every text, and column name, that begins as a formula does."""
    columns = [
        pc.replace_substring_regex(column, _FORMULA, r"'\1")
        if pa.types.is_large_string(column.type)
        else column
        for column in table.columns
    ]
    names = pc.replace_substring_regex(
        pa.array(table.column_names, pa.string()), _FORMULA, r"'\1"
    ).to_pylist()
    fields = [field.with_name(name) for field, name in zip(table.schema, names, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
