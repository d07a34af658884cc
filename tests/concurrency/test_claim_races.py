"""Why the claim comes first: each race with the guard removed, and the product with the guard in place.

The variants without the guard live on scratch tables of the test; see Note [The claim comes first].
"""

import random
import time
from collections import Counter
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from billing.models import Charge, Transfer
from tests import makers
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import (
    Call,
    Held,
    body_of,
    kinds_of,
    race_often,
    run_sql,
    scratch_tables,
)
from tests.concurrency.submissions import abandon, accept_arguments, held_submit, submit
from tombstones import operations as tombstones
from tombstones.models import Claim
from videos import deletion, operations
from videos.errors import IdReused, NotAbandonable
from videos.models import VideoTask
from videos.operations import Submitted

pytestmark = [pytest.mark.django_db(transaction=True)]
needs_row_locks = pytest.mark.postgresql

TABLES = (
    "CREATE TABLE scratch_task (client_id text PRIMARY KEY)",
    "CREATE TABLE scratch_tombstone (client_id text PRIMARY KEY)",
    "CREATE TABLE scratch_charge (client_id text)",
)
TRIGGER = (
    "CREATE OR REPLACE FUNCTION scratch_refuse_buried() RETURNS trigger LANGUAGE plpgsql AS $guard$ BEGIN "
    "IF EXISTS (SELECT 1 FROM scratch_tombstone WHERE client_id = NEW.client_id) "
    "THEN RAISE EXCEPTION 'buried'; END IF; RETURN NEW; END $guard$",
    "CREATE TRIGGER scratch_refuse_buried BEFORE INSERT ON scratch_task "
    "FOR EACH ROW EXECUTE FUNCTION scratch_refuse_buried()",
)


# --- the guard removed ------------------------------------------------------------------------------


def submit_that_looks_first() -> str:
    """Looks for a tombstone, then inserts the task: two statements, and between them a wait."""
    with transaction.atomic():
        if run_sql("SELECT 1 FROM scratch_tombstone WHERE client_id = 'T'"):
            return "gone"
        return insert_task_and_charge()


def insert_task_and_charge() -> str:
    if not run_sql("INSERT INTO scratch_task VALUES ('T') ON CONFLICT DO NOTHING RETURNING client_id"):
        return "replay"
    run_sql("INSERT INTO scratch_charge VALUES ('T')")
    return "charged"


def delete_scratch_task() -> None:
    run_sql("DELETE FROM scratch_task WHERE client_id = 'T'")
    run_sql("INSERT INTO scratch_tombstone VALUES ('T')")


def abandon_that_looks_first() -> str:
    with transaction.atomic():
        if run_sql("SELECT 1 FROM scratch_task WHERE client_id = 'T'"):
            return "alive"
        run_sql("INSERT INTO scratch_tombstone VALUES ('T')")
        return "not charged"


def scratch_charges() -> int:
    return int(run_sql("SELECT count(*) FROM scratch_charge")[0][0])


@needs_row_locks
def test_without_the_claim_a_deletion_slips_past_a_look_and_the_request_is_charged_twice() -> None:
    with scratch_tables(*TABLES):
        assert submit_that_looks_first() == "charged"
        deletion_under_way = Held(delete_scratch_task)
        late_duplicate = Call(submit_that_looks_first)
        late_duplicate.wait_until_it_waits_for_a_lock()
        deletion_under_way.commit()
        assert late_duplicate.result() == "charged"
        assert scratch_charges() == 2
        assert run_sql("SELECT count(*) FROM scratch_tombstone")[0][0] == 1


@needs_row_locks
def test_without_the_claim_a_trigger_before_the_insert_does_not_help() -> None:
    with scratch_tables(*TABLES, *TRIGGER):
        try:
            with transaction.atomic():
                insert_task_and_charge()
            deletion_under_way = Held(delete_scratch_task)
            late_duplicate = Call(submit_that_looks_first)
            late_duplicate.wait_until_it_waits_for_a_lock()
            deletion_under_way.commit()
            assert late_duplicate.result() == "charged"
            assert scratch_charges() == 2
        finally:
            run_sql("DROP FUNCTION scratch_refuse_buried() CASCADE")


@needs_row_locks
def test_with_tombstones_in_a_table_of_their_own_submit_and_abandon_both_succeed() -> None:
    with scratch_tables(*TABLES):
        submit_under_way = Held(submit_that_looks_first_in_this_transaction)
        assert Call(abandon_that_looks_first).result() == "not charged"
        assert submit_under_way.commit() == "charged"
        assert scratch_charges() == 1


def submit_that_looks_first_in_this_transaction() -> str:
    if run_sql("SELECT 1 FROM scratch_tombstone WHERE client_id = 'T'"):
        return "gone"
    return insert_task_and_charge()


# --- the product, step by step ----------------------------------------------------------------------


def held_abandon(owner: makers.Owner, client_id: str) -> Held:
    return Held(lambda: tombstones.insert_fence(owner_id=owner.id, client_id=client_id, now=timezone.now()))


@needs_row_locks
def test_a_duplicate_waits_for_the_first_and_is_its_replay() -> None:
    owner, client_id = makers.make_owner(), makers.new_client_id()
    first = held_submit(owner, client_id)
    second = Call(lambda: submit(owner, client_id))
    second.wait_until_it_waits_for_a_lock()
    first.commit()
    assert second.result().is_new is False
    assert Charge.objects.count() == 1
    assert owner.balance_micros == 100_000_000 - makers.PRICE_MICROS
    assert_books_balance()


@needs_row_locks
def test_a_duplicate_takes_over_when_the_first_rolls_back() -> None:
    owner, client_id = makers.make_owner(), makers.new_client_id()
    first = held_submit(owner, client_id)
    second = Call(lambda: submit(owner, client_id))
    second.wait_until_it_waits_for_a_lock()
    first.roll_back()
    assert second.result().is_new is True
    assert owner.balance_micros == 100_000_000 - makers.PRICE_MICROS
    assert_books_balance()


@needs_row_locks
def test_another_body_that_waits_for_the_first_is_refused_and_charges_nothing() -> None:
    owner, client_id = makers.make_owner(), makers.new_client_id()
    first = held_submit(owner, client_id)
    other = Call(lambda: submit(owner, client_id, prompt="a dog on a roof"))
    other.wait_until_it_waits_for_a_lock()
    first.commit()
    with pytest.raises(IdReused):
        other.result()
    assert owner.balance_micros == 100_000_000 - makers.PRICE_MICROS
    assert makers.view(owner, client_id).prompt == "a cat on a roof"
    assert_books_balance()


@needs_row_locks
def test_a_submit_that_waits_for_an_abandon_is_never_charged() -> None:
    owner, client_id = makers.make_owner(), makers.new_client_id()
    fence = held_abandon(owner, client_id)
    late = Call(lambda: submit(owner, client_id))
    late.wait_until_it_waits_for_a_lock()
    fence.commit()
    assert late.result().view.is_buried
    assert (Charge.objects.count(), VideoTask.objects.count()) == (0, 0)
    assert owner.balance_micros == 100_000_000
    assert_books_balance()


@needs_row_locks
def test_a_submit_goes_through_when_the_abandon_it_waited_for_rolls_back() -> None:
    owner, client_id = makers.make_owner(), makers.new_client_id()
    fence = held_abandon(owner, client_id)
    late = Call(lambda: submit(owner, client_id))
    late.wait_until_it_waits_for_a_lock()
    fence.roll_back()
    assert late.result().is_new
    assert_books_balance()


@needs_row_locks
def test_an_abandon_that_waits_for_a_submit_says_that_it_did_arrive() -> None:
    owner, client_id = makers.make_owner(), makers.new_client_id()
    first = held_submit(owner, client_id)
    fence = Call(lambda: abandon(owner, client_id))
    fence.wait_until_it_waits_for_a_lock()
    first.commit()
    with pytest.raises(NotAbandonable):
        fence.result()
    assert Claim.objects.get().state == "live"
    assert owner.balance_micros == 100_000_000 - makers.PRICE_MICROS
    assert_books_balance()


@needs_row_locks
def test_two_abandons_at_once_are_one_fence() -> None:
    owner, client_id = makers.make_owner(), makers.new_client_id()
    first = held_abandon(owner, client_id)
    second = Call(lambda: abandon(owner, client_id))
    second.wait_until_it_waits_for_a_lock()
    fence = first.commit()
    assert second.result().claim.pk == fence.pk
    assert Claim.objects.count() == 1


def refunded_task(owner: makers.Owner) -> str:
    client_id = makers.submit(owner)
    assert operations.cancel(owner_id=owner.id, client_id=client_id, now=timezone.now()).is_done
    return client_id


def delete(owner: makers.Owner, client_id: str) -> None:
    deletion.delete_task(owner_id=owner.id, client_id=client_id, now=timezone.now())


@needs_row_locks
def test_a_duplicate_that_missed_the_look_waits_for_the_deletion_and_is_still_refused() -> None:
    """The very interleaving that charges twice without the claim."""
    owner = makers.make_owner()
    client_id = refunded_task(owner)
    deletion_under_way = Held(
        lambda: body_of(deletion.delete_task)(owner_id=owner.id, client_id=client_id, now=timezone.now())
    )
    arguments = accept_arguments(owner, client_id)
    late_duplicate = Call(lambda: operations._accept(**arguments))
    late_duplicate.wait_until_it_waits_for_a_lock()
    deletion_under_way.commit()
    with pytest.raises(tombstones.AlreadyClaimed):
        late_duplicate.result()
    assert (Charge.objects.count(), VideoTask.objects.count()) == (1, 0)
    assert submit(owner, client_id).view.is_buried
    assert owner.balance_micros == 100_000_000
    assert_books_balance()


@needs_row_locks
def test_a_duplicate_during_a_deletion_is_a_replay_and_after_it_gone() -> None:
    owner = makers.make_owner()
    client_id = refunded_task(owner)
    deletion_under_way = Held(
        lambda: body_of(deletion.delete_task)(owner_id=owner.id, client_id=client_id, now=timezone.now())
    )
    assert submit(owner, client_id).view.is_buried is False
    deletion_under_way.commit()
    assert submit(owner, client_id).view.is_buried is True
    assert Charge.objects.count() == 1
    assert_books_balance()


# --- the product, by chance -------------------------------------------------------------------------

ROUNDS = 80
chance = random.Random()


def stagger() -> None:
    """Neither side always comes first: the whole of a submit takes about this long."""
    time.sleep(chance.random() * 0.012)


def word_of(outcome: Any) -> str:
    """What a caller would say it was told."""
    if isinstance(outcome, Exception):
        return type(outcome).__name__
    if isinstance(outcome, Submitted):
        return "gone" if outcome.view.is_buried else "new" if outcome.is_new else "replay"
    return "fenced" if outcome is not None else "deleted"


def tally(outcomes: list[list[Any]]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(word_of(outcome) for outcome in row) for row in outcomes)


def rich_owner() -> makers.Owner:
    return makers.make_owner(balance="100000")


def ids_for(rounds: int) -> list[str]:
    return [makers.new_client_id() for _ in range(rounds)]


def test_of_submit_and_abandon_exactly_one_wins_every_time() -> None:
    owner, ids = rich_owner(), ids_for(ROUNDS)

    def order(number: int) -> Submitted:
        stagger()
        return submit(owner, ids[number])

    def fence(number: int) -> Any:
        stagger()
        return abandon(owner, ids[number])

    told = tally(race_often(order, fence, rounds=ROUNDS))
    assert told.keys() <= {("new", "NotAbandonable"), ("gone", "fenced")}
    charged = told["new", "NotAbandonable"]
    assert 0 < charged < ROUNDS, "one side always came first; nothing was raced"
    assert Charge.objects.count() == VideoTask.objects.count() == charged
    assert Claim.objects.count() == ROUNDS
    assert owner.balance_micros == 100_000_000_000 - charged * makers.PRICE_MICROS
    assert_books_balance()


def test_the_same_request_four_times_at_once_is_one_task_and_one_charge() -> None:
    owner, rounds = rich_owner(), ROUNDS // 2
    ids = ids_for(rounds)
    outcomes = race_often(*[lambda number: submit(owner, ids[number])] * 4, rounds=rounds)
    for row in outcomes:
        assert sorted(word_of(outcome) for outcome in row) == ["new", "replay", "replay", "replay"]
        assert len({outcome.view.claim.pk for outcome in row}) == 1
    assert Charge.objects.count() == Claim.objects.count() == rounds
    assert owner.balance_micros == 100_000_000_000 - rounds * makers.PRICE_MICROS
    assert_books_balance()


def test_of_two_bodies_under_one_id_one_is_taken_and_the_other_refused() -> None:
    owner, ids = rich_owner(), ids_for(ROUNDS)
    outcomes = race_often(
        lambda number: submit(owner, ids[number], prompt="a cat"),
        lambda number: submit(owner, ids[number], prompt="a dog"),
        rounds=ROUNDS,
    )
    for client_id, row in zip(ids, outcomes, strict=True):
        assert kinds_of(row) == ["IdReused", "ok"]
        winner = "a cat" if not isinstance(row[0], Exception) else "a dog"
        assert makers.view(owner, client_id).prompt == winner
    assert Charge.objects.count() == ROUNDS
    assert owner.balance_micros == 100_000_000_000 - ROUNDS * makers.PRICE_MICROS
    assert_books_balance()


def test_a_duplicate_against_a_deletion_never_charges_and_never_brings_the_task_back() -> None:
    owner = rich_owner()
    rounds = ROUNDS // 2
    ids = [refunded_task(owner) for _ in range(rounds)]

    def duplicate(number: int) -> Submitted:
        stagger()
        return submit(owner, ids[number])

    def remove(number: int) -> None:
        stagger()
        delete(owner, ids[number])

    told = tally(race_often(duplicate, remove, rounds=rounds))
    assert told.keys() <= {("replay", "deleted"), ("gone", "deleted")}
    assert Charge.objects.count() == Transfer.objects.filter(kind="refund").count() == rounds
    assert VideoTask.objects.count() == 0
    assert owner.balance_micros == 100_000_000_000
    assert {word_of(submit(owner, client_id)) for client_id in ids} == {"gone"}
    assert_books_balance()
