from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets_tests.operators.deduplication.data_sets import kept_ids, outcomes, rejected_rows
from dataflow_assets_tests.operators.sample_tables import table

LINES, SENTENCES = "drop_duplicate_lines", "drop_duplicate_sentences"


def left(name: str, texts: list[str], batch_rows: int = 2, **params: object) -> dict[str, str]:
    found = outcomes(name, table(text=texts), batch_rows, params)
    return {row["row_id"]: row["text"] for outcome in found for row in outcome.kept.to_pylist()}


def test_a_line_that_came_before_goes():
    texts = ["Home | About\nOne story.\n", "HOME - about\n\nAnother story.", "Tail\nOne story."]
    assert left(LINES, texts) == {
        "r0": "Home | About\nOne story.\n",
        "r1": "\nAnother story.",
        "r2": "Tail",
    }


def test_a_line_that_the_same_text_has_twice_goes_too():
    assert left(LINES, ["a\nb\na\nc"]) == {"r0": "a\nb\nc"}


def test_lines_without_letters_stay():
    assert left(LINES, ["a\n---\n\nb", "c\n---\n\nd"]) == {"r0": "a\n---\n\nb", "r1": "c\n---\n\nd"}


def test_a_row_of_which_nothing_is_left_is_rejected_as_it_came():
    found = outcomes(LINES, table(text=["a\nb", " B \n a!\n"]), 1)
    assert rejected_rows(found) == [
        {"row_id": "r1", "text": " B \n a!\n", "reject_reason": "only_duplicate_lines"}
    ]
    assert kept_ids(found) == ["r0"]


def test_three_sentences_that_came_before_go():
    texts = [
        "One is. Two is. Three is. Four is.",
        "Begin. Two is. Three is. Four is. End!",
        "Two is. Three is.",
    ]
    assert left(SENTENCES, texts) == {"r0": texts[0], "r1": "Begin. End!", "r2": texts[2]}


def test_runs_overlap_so_that_four_sentences_go():
    texts = ["One is. Two is. Three is. Four is.", "New. One is. Two is. Three is. Four is."]
    assert left(SENTENCES, texts)["r1"] == "New."


def test_chinese_sentences_are_sentences():
    texts = ["一。二！三？四。", "五。二！三？四。六。"]
    assert left(SENTENCES, texts)["r1"] == "五。六。"


def test_a_text_of_repeated_sentences_alone_is_rejected():
    found = outcomes(SENTENCES, table(text=["One. Two. Three.", "One. Two. Three."]), 5)
    assert [row["reject_reason"] for row in rejected_rows(found)] == ["only_duplicate_sentences"]


def without_seen(texts: list[list[str]]) -> list[list[str]]:
    seen: set[str] = set()
    return [[line for line in text if not (line in seen or seen.add(line))] for text in texts]


@given(st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6), max_size=8), st.integers(1, 4))
def test_lines_that_were_seen_go_at_every_batch_size(texts: list[list[str]], batch_rows: int):
    if texts:
        expected = {f"r{row}": "\n".join(lines) for row, lines in enumerate(without_seen(texts)) if lines}
        assert left(LINES, ["\n".join(lines) for lines in texts], batch_rows) == expected
