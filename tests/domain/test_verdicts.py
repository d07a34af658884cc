"""What an answer means for its attempt, and what all attempts mean for the task: pure tables."""

import pytest

from core.http import AnswerLost, NotSent
from videos.engine.verdicts import Answer, Fate, Tried, Verdict, fate_of, judge_answer, refusal_params
from videos.providers.base import (
    Accepted,
    AccountTrouble,
    Rejected,
    Throttled,
    Unclear,
    WrongAddress,
)
from videos.states import OUTCOME_CHANGES, Outcome


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (Accepted(upstream_id="r1"), Verdict(outcome=Outcome.ACCEPTED, reason="")),
        (
            Rejected(code="input_invalid", detail="no", field="seconds"),
            Verdict(outcome=Outcome.REJECTED, reason="input_invalid:seconds"),
        ),
        (
            Throttled(retry_after_seconds=7),
            Verdict(outcome=Outcome.REJECTED, reason="throttled", pause_seconds=7),
        ),
        (
            AccountTrouble(reason="locked"),
            Verdict(outcome=Outcome.REJECTED, reason="account:locked", is_alarm=True),
        ),
        (
            WrongAddress(reason="html"),
            Verdict(outcome=Outcome.UNCLEAR, reason="wrong_address:html", is_alarm=True),
        ),
        (Unclear(reason="no_id"), Verdict(outcome=Outcome.UNCLEAR, reason="no_id")),
        (NotSent("refused"), Verdict(outcome=Outcome.NOT_SENT, reason="refused")),
        (AnswerLost("reset"), Verdict(outcome=Outcome.UNCLEAR, reason="reset")),
    ],
)
def test_an_answer_says_something_of_its_own_attempt_alone(answer: Answer, verdict: Verdict) -> None:
    assert judge_answer(answer) == verdict


REFUSED = Tried(outcome=Outcome.REJECTED, reason="prompt_refused:")
THROTTLED = Tried(outcome=Outcome.REJECTED, reason="throttled")
LOCKED = Tried(outcome=Outcome.REJECTED, reason="account:locked")
UNSENT = Tried(outcome=Outcome.NOT_SENT, reason="dns")
UNCLEAR = Tried(outcome=Outcome.UNCLEAR, reason="timeout")
INFLIGHT = Tried(outcome=Outcome.INFLIGHT, reason="")
ACCEPTED = Tried(outcome=Outcome.ACCEPTED, reason="")


@pytest.mark.parametrize(
    ("attempts", "fate"),
    [
        ([], Fate.UNSENT),
        ([UNSENT], Fate.UNSENT),
        ([THROTTLED, THROTTLED], Fate.UNSENT),
        ([LOCKED], Fate.UNSENT),
        ([REFUSED], Fate.REFUSED),
        ([THROTTLED, REFUSED], Fate.REFUSED),
        ([UNCLEAR], Fate.OPEN),
        ([INFLIGHT], Fate.OPEN),
        ([UNCLEAR, REFUSED], Fate.OPEN),  # a refusal proves only its own attempt
        ([UNCLEAR, THROTTLED], Fate.OPEN),
        ([UNCLEAR, UNSENT], Fate.OPEN),
        ([UNCLEAR, ACCEPTED], Fate.RUNNING),
        ([ACCEPTED], Fate.RUNNING),
    ],
)
def test_all_attempts_together_say_what_became_of_a_task(attempts: list[Tried], fate: Fate) -> None:
    assert fate_of(attempts) == fate


def test_only_a_refused_input_has_figures_and_an_unnamed_field_is_the_request() -> None:
    assert refusal_params("input_invalid:seconds") == {"field": "seconds"}
    assert refusal_params("input_invalid:") == {"field": "request"}
    assert refusal_params("prompt_refused:prompt") == {}


def test_an_outcome_once_known_is_never_rewritten() -> None:
    known = {Outcome.ACCEPTED, Outcome.REJECTED, Outcome.NOT_SENT}
    assert {before for before, _ in OUTCOME_CHANGES} == {Outcome.INFLIGHT, Outcome.UNCLEAR}
    assert {after for before, after in OUTCOME_CHANGES if before == Outcome.UNCLEAR} == known
