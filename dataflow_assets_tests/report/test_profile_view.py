import pytest

from dataflow_assets.report.profile_view import Compared, Room, compared, fact_text, number, percent


def measure(*counts: int, high: float = 10.0, **more: float) -> dict:
    edges = [place * high / len(counts) for place in range(len(counts) + 1)]
    told = {"count": sum(counts), "min": 0, "p05": 1, "p50": 5, "p95": 9, "max": high, "mean": 5.0}
    return {**told, "histogram": {"edges": edges, "counts": list(counts)}, **more}


def text(chars: dict, **more: object) -> dict:
    return {"type": "string", "nulls": 0, "measures": {"chars": chars}, **more}


def profile(**columns: dict) -> dict:
    return {"rows": 1200, "sampled_rows": 1000, "columns": columns}


def test_without_any_profile_there_is_nothing_to_show():
    assert compared(None, None, Room()) is None
    assert compared({}, {}, Room()) is None


def test_columns_are_new_gone_changed_or_as_before():
    before = profile(same=text(measure(1)), gone=text(measure(1)), other=text(measure(1)))
    after = profile(same=text(measure(1)), new=text(measure(1)), other=text(measure(2, 3)))
    view = compared(before, after, Room())
    assert view is not None
    assert {column.name: column.status for column in view.columns} == {
        "new": "new",
        "gone": "gone",
        "other": "changed",
    }
    assert view.same == ["same"]


def test_counts_and_shares_stand_side_by_side():
    before = profile(
        t=text(measure(1), distinct=1180, duplicates=0.016, shares={"language": {"en": 0.9, "zh": 0.1}})
    )
    after = profile(t=text(measure(2), distinct=900, duplicates=0.0, shares={"language": {"en": 1.0}}))
    view = compared(before, after, Room())
    assert view is not None
    column = view.columns[0]
    assert Compared("distinct values", "1,180", "900") in column.facts
    assert Compared("duplicates", "1.6%", "0%") in column.facts
    assert column.shares == [("language", [Compared("en", "90%", "100%"), Compared("zh", "10%", "0%")])]


def test_an_estimate_is_marked_as_one():
    assert fact_text({"distinct": 1180, "distinct_is_exact": False}, "distinct") == "≈ 1,180"
    assert fact_text({"distinct": 1180, "distinct_is_exact": True}, "distinct") == "1,180"


def test_both_histograms_have_one_scale():
    view = compared(profile(t=text(measure(1, 1, high=10))), profile(t=text(measure(2, high=5))), Room())
    assert view is not None
    shown = view.columns[0].measures[0]
    assert (shown.low, shown.high) == ("0", "10")
    assert shown.before and shown.after
    assert shown.before.path == "M0.0 44V22.0H80.0V44zM80.0 44V22.0H160.0V44z"
    assert shown.after.path == "M0.0 44V0.0H80.0V44z"
    assert shown.after.alt == "Histogram after: min 0, 5% 1, median 5, 95% 9, max 5, mean 5"


def test_a_last_bin_with_more_behind_it_says_so():
    view = compared(None, profile(t=text(measure(1, 1, max=500))), Room())
    assert view is not None and view.columns[0].measures[0].high == "10 and more"


def test_measures_of_one_value_and_those_as_before_are_only_named():
    constant = {"count": 3, "min": 0, "max": 0, "mean": 0}
    before, after = (
        profile(t={"type": "string", "measures": {"urls": constant, "words": measure(1), "chars": chars}})
        for chars in (measure(1), measure(2, 1))
    )
    view = compared(before, after, Room())
    assert view is not None
    column = view.columns[0]
    assert ([each.name for each in column.measures], column.constant, column.as_before) == (
        ["chars"],
        [("urls", "0")],
        ["words"],
    )


def test_only_so_many_measures_and_columns_are_drawn():
    after = profile(**{f"c{number}": text(measure(1, 2)) for number in range(20)})
    view = compared(None, after, Room(5))
    assert view is not None
    assert sum(len(column.measures) for column in view.columns) == 5
    assert (len(view.columns), len(view.left_out)) == (12, 8)


def test_what_was_sampled_and_what_has_no_profile_is_said():
    view = compared(None, {**profile(t=text(measure(1, 2))), "batches_left_out": 2}, Room())
    assert view is not None
    assert view.sampled == ("of 1,200 rows (batches left out: 2); lengths and the like of a sample of 1,000")


def test_an_empty_histogram_draws_nothing():
    view = compared(
        None, profile(t={"type": "string", "measures": {"chars": {"count": 2, "min": 1, "max": 4}}}), Room()
    )
    assert view is not None and view.columns[0].measures[0].after is not None
    assert view.columns[0].measures[0].after.path == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1234567, "1,234,567"),
        (0.123456, "0.123"),
        (12345.6, "12,346"),
        (999.6, "1,000"),
        (2.0, "2"),
        (None, ""),
        (float("nan"), "nan"),
    ],
)
def test_numbers_are_short(value: object, shown: str):
    assert number(value) == shown


@pytest.mark.parametrize(
    ("share", "shown"), [(0, "0%"), (1, "100%"), (0.5, "50%"), (0.0001, "<0.1%"), (0.125, "12.5%")]
)
def test_shares_are_percents(share: float, shown: str):
    assert percent(share) == shown
