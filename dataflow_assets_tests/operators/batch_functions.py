"""Functions of a user on whole tables, as `map_arrow` and `map_pandas` call them."""

import sys

import pyarrow as pa
import pyarrow.compute as pc


def count_chars(table: pa.Table) -> pa.Table:
    return table.append_column("chars", pc.utf8_length(table["text"]))


def odd_only(table: pa.Table) -> pa.Table:
    return table.filter(pc.equal(pc.bit_wise_and(table["n"], 1), 1))


def backwards(table: pa.Table) -> pa.Table:
    return table.select(["row_id", "n"]).take(pa.array(range(table.num_rows - 1, -1, -1)))


def with_reasons(table: pa.Table) -> pa.Table:
    reasons = [f"n_is_{n}" if n > 1 else None for n in table["n"].to_pylist()]
    return table.append_column("reject_reason", pa.array(reasons))


def fails_on_two(table: pa.Table) -> pa.Table:
    if 2 in table["n"].to_pylist():
        raise ValueError("two is too many")
    return table


def exits_on_two(table: pa.Table) -> pa.Table:
    if 2 in table["n"].to_pylist():
        sys.exit("two is the end")
    return table


def doubles(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table, table])


def renames_rows(table: pa.Table) -> pa.Table:
    return pa.table({"row_id": ["new"] * table.num_rows})


def drops_ids(table: pa.Table) -> pa.Table:
    return table.drop_columns(["row_id"])


def undeclared(table: pa.Table) -> pa.Table:
    return table.append_column("other", table["n"])


def wrong_type(table: pa.Table) -> pa.Table:
    return table.set_column(table.column_names.index("n"), "n", pa.array(["x"] * table.num_rows))


def no_table(table: pa.Table) -> list:
    return []


def nested(table: pa.Table) -> pa.Table:
    return table.append_column("inner", pa.array([{"a": [n]} for n in table["n"].to_pylist()]))


def json_texts(table: pa.Table) -> pa.Table:
    return table.append_column("inner", table["text"])


def numbered_ids(table: pa.Table) -> pa.Table:
    return table.set_column(0, "row_id", pa.array(range(table.num_rows)))


def numbered_reasons(table: pa.Table) -> pa.Table:
    return table.append_column("reject_reason", table["n"])


def frame_chars(frame):
    return frame.assign(chars=frame["text"].str.len())


def frame_odd(frame):
    return frame[frame["n"] % 2 == 1]


def frame_meta(frame):
    frame = frame.sample(frac=1, random_state=1)
    frame["keys"] = [None if meta is None else sorted(meta) for meta in frame["meta"]]
    return frame[["row_id", "keys"]]


def frame_sum(frame):
    return frame.assign(big=frame["n"] + 1, share=frame["n"] / 2)
