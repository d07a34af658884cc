"""The answer to COMMIT is lost: the request is repeated, told the truth, and never charged twice."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.utils import timezone

from billing.models import Account, Charge
from core.errors import OutcomeNotKnown, Unavailable
from tests import makers
from tests.concurrency.books import assert_books_balance
from tests.concurrency.lossy_wire import Loss, LossyWire, over, wire_to_the_database
from tests.concurrency.racing import Call, Held
from tombstones.models import Claim
from videos import operations
from videos.operations import Submitted

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]
FULL = 100_000_000


@pytest.fixture
def wire() -> Iterator[LossyWire]:
    with wire_to_the_database() as lossy:
        yield lossy


@pytest.fixture
def owner() -> makers.Owner:
    return makers.make_owner()


def submitting(owner: makers.Owner, client_id: str) -> Callable[[], Submitted]:
    fields = makers.order(id=client_id)
    return lambda: operations.submit_video(owner_id=owner.id, fields=fields, token=None, now=timezone.now())


def submit_over(wire: LossyWire, owner: makers.Owner, client_id: str, **options: Any) -> Submitted:
    submitted: Submitted = Call(over(wire, submitting(owner, client_id), **options)).result()
    return submitted


def assert_charged(owner: makers.Owner, times: int) -> None:
    assert Charge.objects.count() == times
    assert owner.balance_micros == FULL - times * makers.PRICE_MICROS
    assert_books_balance()


def test_over_a_wire_that_loses_nothing_a_submit_is_new(wire: LossyWire, owner: makers.Owner) -> None:
    assert submit_over(wire, owner, makers.new_client_id()).is_new
    assert wire.commits == 1
    assert_charged(owner, 1)


@pytest.mark.parametrize("loss", [Loss.AFTER, Loss.LATE])
def test_a_commit_that_took_effect_is_recognised_as_our_own(
    wire: LossyWire, owner: makers.Owner, loss: Loss
) -> None:
    wire.losses = [loss]
    submitted = submit_over(wire, owner, makers.new_client_id())
    assert (submitted.is_new, submitted.view.task.state) == (True, "submitting")
    assert wire.commits == 1  # the repetition found its own claim and had nothing to commit
    assert_charged(owner, 1)


def test_a_commit_that_never_arrived_is_done_by_the_repetition(wire: LossyWire, owner: makers.Owner) -> None:
    wire.losses = [Loss.BEFORE]
    assert submit_over(wire, owner, makers.new_client_id()).is_new
    assert wire.commits == 2
    assert_charged(owner, 1)


def test_a_commit_lost_every_time_says_that_it_does_not_know(wire: LossyWire, owner: makers.Owner) -> None:
    wire.losses, client_id = [Loss.BEFORE] * 3, makers.new_client_id()
    with pytest.raises(OutcomeNotKnown):
        submit_over(wire, owner, client_id)
    assert wire.commits == 3
    assert_charged(owner, 0)
    assert submit_over(wire, owner, client_id).is_new  # asking again with the same id is safe
    assert_charged(owner, 1)


def test_a_repetition_that_cannot_wait_for_the_lost_one_does_not_say_that_nothing_was_saved(
    wire: LossyWire, owner: makers.Owner
) -> None:
    """The lost backend still holds the claim; it might yet commit, so only `outcome_unknown` is true."""
    wire.losses, client_id = [Loss.BEFORE_UNSEEN], makers.new_client_id()
    with pytest.raises(OutcomeNotKnown):
        submit_over(wire, owner, client_id, lock_timeout="300ms")
    assert_charged(owner, 0)
    wire.let_go()
    assert submit_over(wire, owner, client_id).is_new
    assert_charged(owner, 1)


def test_a_database_that_goes_away_with_the_commit_leaves_the_outcome_unknown(
    wire: LossyWire, owner: makers.Owner
) -> None:
    wire.losses, wire.goes_down_after_a_loss = [Loss.AFTER], True
    client_id = makers.new_client_id()
    with pytest.raises(OutcomeNotKnown):
        submit_over(wire, owner, client_id)
    wire.is_down = False
    assert submit_over(wire, owner, client_id).is_new is False  # it was kept, and this is its replay
    assert_charged(owner, 1)


def test_a_connection_lost_after_the_commit_does_not_say_that_nothing_was_saved(
    wire: LossyWire, owner: makers.Owner
) -> None:
    wire.losses, client_id = [Loss.NEXT], makers.new_client_id()
    wire.goes_down_after_a_loss = True
    try:
        submitted = submit_over(wire, owner, client_id)
    except OutcomeNotKnown:
        submitted = submit_over(wire, owner, client_id)
    assert submitted.view.charged_micros == makers.PRICE_MICROS
    assert_charged(owner, 1)


def test_an_abandon_whose_commit_was_lost_is_still_one_fence(wire: LossyWire, owner: makers.Owner) -> None:
    wire.losses, client_id = [Loss.AFTER], makers.new_client_id()
    view = Call(
        over(
            wire,
            lambda: operations.abandon(owner_id=owner.id, client_id=client_id, now=timezone.now()),
        )
    ).result()
    assert (view.is_buried, view.claim.reason) == (True, "abandoned")
    assert Claim.objects.count() == 1
    assert_charged(owner, 0)


def post_over(wire: LossyWire, owner: makers.Owner, document: dict[str, Any], **options: Any) -> Any:
    return Call(over(wire, lambda: makers.post(owner, document), **options)).result()


def test_without_a_database_the_answer_is_503_and_says_that_nothing_was_saved(
    wire: LossyWire, owner: makers.Owner
) -> None:
    wire.is_down = True
    answer = post_over(wire, owner, makers.order())
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert int(answer["Retry-After"]) > 0
    assert Claim.objects.count() == 0
    assert_charged(owner, 0)


def test_a_lost_commit_answers_503_with_outcome_unknown_over_http(
    wire: LossyWire, owner: makers.Owner
) -> None:
    document = makers.order()
    lost_all = [Loss.BEFORE_UNSEEN]

    def post() -> Any:
        # Authentication commits of its own accord; the loss is meant for the submission's COMMIT.
        wire.losses = lost_all
        return makers.post(owner, document)

    answer = Call(over(wire, post, lock_timeout="300ms")).result()
    assert (answer.status_code, answer.json()["code"]) == (503, "outcome_unknown")
    assert_charged(owner, 0)
    wire.let_go()
    assert makers.post(owner, document).status_code == 201
    assert_charged(owner, 1)


@pytest.mark.parametrize("loss", [Loss.AFTER, Loss.BEFORE])
def test_a_cancel_whose_commit_was_lost_says_that_it_does_not_know_and_refunds_once(
    wire: LossyWire, owner: makers.Owner, loss: Loss
) -> None:
    client_id = makers.submit(owner)
    wire.losses = [loss]
    address = f"/api/videos/{client_id}/cancel"
    answer = Call(over(wire, lambda: owner.api.post(address))).result()
    assert (answer.status_code, answer.json()["code"]) == (503, "outcome_unknown")
    assert makers.task_of(owner, client_id).state == ("failed" if loss is Loss.AFTER else "submitting")
    assert owner.api.post(address).status_code == 200
    assert owner.balance_micros == FULL
    assert_books_balance()


def test_a_deletion_whose_commit_was_lost_says_that_it_does_not_know_and_is_done(
    wire: LossyWire, owner: makers.Owner
) -> None:
    client_id = makers.submit(owner)
    address = f"/api/videos/{client_id}"
    assert owner.api.post(f"{address}/cancel").status_code == 200
    wire.losses = [Loss.AFTER]
    answer = Call(over(wire, lambda: owner.api.delete(address))).result()
    assert (answer.status_code, answer.json()["code"]) == (503, "outcome_unknown")
    assert owner.api.delete(address).status_code == 410
    assert_books_balance()


def test_a_lock_wait_that_is_over_saves_nothing_and_says_so(wire: LossyWire, owner: makers.Owner) -> None:
    somebody = Held(lambda: Account.objects.select_for_update().get(pk=owner.id))
    with pytest.raises(Unavailable):
        submit_over(wire, owner, makers.new_client_id(), lock_timeout="200ms")
    document = makers.order()
    answer = post_over(wire, owner, document, lock_timeout="200ms")
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert Claim.objects.count() == 0
    assert_charged(owner, 0)
    somebody.commit()
    assert makers.post(owner, document).status_code == 201
    assert_charged(owner, 1)
