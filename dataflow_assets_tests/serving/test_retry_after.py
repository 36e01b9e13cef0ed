"""Every form in which a server says when to ask again."""

import json
from email.utils import formatdate, parsedate_to_datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.serving.retry_after import retry_after_s

CASE = json.loads((Path(__file__).parents[1] / "cases/24_retry_after_forms/input.cases.json").read_text())
NOW = parsedate_to_datetime(CASE["now"]).timestamp()
EXPECTED = {
    "seconds": 2,
    "fraction": 0.5,
    "ms_header": 0.15,
    "http_date_future": 3,
    "http_date_past": 0,
    "one_day": 86400,
}


@pytest.mark.parametrize("case", CASE["cases"], ids=lambda case: case["name"])
def test_each_form_of_case_24_is_read(case):
    assert retry_after_s(case["headers"], NOW) == pytest.approx(EXPECTED.get(case["name"]))


@pytest.mark.parametrize(
    "value", ["", " ", "soon", "-5", "-0.1", "nan", "inf", "1e3", "1_0", "١", "2 s", "9" * 400, "25:61"]
)
def test_what_is_no_time_is_none(value):
    assert retry_after_s({"Retry-After": value}, NOW) is None


@pytest.mark.parametrize("value", ["Wednesday, 15-Jul-26 08:00:03 GMT", "Wed Jul 15 08:00:03 2026"])
def test_the_old_forms_of_dates_are_read(value):
    assert retry_after_s({"Retry-After": value}, NOW) == 3


def test_milliseconds_win_over_seconds_where_they_are_readable():
    assert retry_after_s({"RETRY-AFTER-MS": "1500", "Retry-After": "9"}, NOW) == 1.5
    assert retry_after_s({"Retry-After-Ms": "-1", "Retry-After": "9"}, NOW) == 9


@given(st.integers(0, 4_000_000_000), st.integers(-1_000_000, 1_000_000))
def test_a_date_is_the_seconds_until_it_and_never_negative(now, ahead):
    date = formatdate(max(0, now + ahead), usegmt=True)
    assert retry_after_s({"retry-after": date}, now) == max(0, max(0, now + ahead) - now)


@given(st.floats(0, 1e9).map(lambda seconds: f"{seconds:.3f}"))
def test_seconds_are_read_as_they_are_written(value):
    assert retry_after_s({"Retry-After": value}, NOW) == float(value)


@given(st.dictionaries(st.sampled_from(["Retry-After", "retry-after-ms", "X"]), st.text()))
def test_no_text_raises_or_asks_for_less_than_nothing(headers):
    wait = retry_after_s(headers, NOW)
    assert wait is None or wait >= 0


DAY, CLOCK = r"[A-Z][a-z]{2}, [0-9]{1,3} [A-Z][a-z]{2} [0-9]{1,6}", r"[0-9]{1,3}(:[0-9]{1,3}){1,2}"


@given(st.from_regex(rf"{DAY} {CLOCK} ([A-Z]{{3}}|[+-][0-9]{{1,6}})", fullmatch=True))
def test_no_near_date_raises(value):
    wait = retry_after_s({"Retry-After": value}, NOW)
    assert wait is None or wait >= 0
