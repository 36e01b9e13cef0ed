"""The breaker pauses on a run of hard failures, and on nothing else."""

import pickle

import pytest

from dataflow_assets.errors import Paused
from dataflow_assets.serving.breaker import Breaker
from dataflow_assets.serving.calls import HARD, RETRYABLE, CallFailed

AUTH = CallFailed("auth", "401: invalid key")


SOFT = (RETRYABLE - {"connection"}) | {"bad_request", "content_filter", "truncated"}


@pytest.mark.parametrize("error_class", sorted(HARD | {"connection"}))
def test_hard_failures_in_a_row_pause_the_run(error_class: str) -> None:
    breaker = Breaker(3)
    for _ in range(2):
        breaker.failed(CallFailed(error_class, "no"))
    breaker.check()
    breaker.failed(CallFailed(error_class, "no"))
    with pytest.raises(Paused, match=f"3 calls in a row failed with {error_class}"):
        breaker.check()


def test_a_success_between_hard_failures_keeps_it_closed() -> None:
    breaker = Breaker(2)
    for _ in range(5):
        breaker.failed(AUTH)
        breaker.succeeded()
    breaker.check()


@pytest.mark.parametrize("error_class", sorted(SOFT))
def test_other_failures_never_open_it(error_class: str) -> None:
    breaker = Breaker(1)
    for _ in range(10):
        breaker.failed(CallFailed(error_class, "no"))
    breaker.check()


def test_other_failures_in_between_do_not_close_it() -> None:
    breaker = Breaker(2)
    for error in (AUTH, CallFailed("server_error", "500"), AUTH):
        breaker.failed(error)
    with pytest.raises(Paused):
        breaker.check()


def test_the_pause_says_its_cause_what_the_server_said_and_what_to_do() -> None:
    breaker = Breaker(1)
    breaker.failed(AUTH)
    with pytest.raises(Paused, match=r"401: invalid key; wrong key\? .* then resume") as caught:
        breaker.check()
    assert caught.value.cause == "breaker" and caught.value.exit_code == 3


def test_a_pause_can_be_sent_between_processes() -> None:
    pause = pickle.loads(pickle.dumps(Paused("why", "budget")))
    assert (str(pause), pause.cause) == ("why", "budget")
