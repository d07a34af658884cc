"""What staff may do to a task and its money, what they see before it, and what is refused."""

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from billing.models import Transfer
from tests import makers
from tests.admin.pages import action_page, goodwill_page, task_page, text_of
from videos import deletion, desk
from videos.audit import violations
from videos.models import Attempt, Evidence, TaskEvent, VideoTask

pytestmark = pytest.mark.django_db

ACTIONS = ("adopt", "never_received_resend", "never_received_refund", "fail_and_refund")
FILLED = {"reason": "the provider's ticket 17", "state_shown": "unknown"}


def act(client: Client, task: Any, action: str, **given: str) -> Any:
    return client.post(action_page(task.pk, action), {**FILLED, **given}, follow=True)


def state_of(task: Any) -> str:
    return VideoTask.objects.get(pk=task.pk).state


def everything() -> tuple[int, ...]:
    """How many rows an action could have added."""
    return tuple(model.objects.count() for model in (Transfer, Evidence, TaskEvent, Attempt))


def test_looking_at_an_action_changes_nothing(staff: Client, unknown_task: Any) -> None:
    owner, task = unknown_task
    before = everything()
    for action in ACTIONS:
        page = text_of(staff.get(action_page(task.pk, action)))
        assert "Available to the owner 95.84 USDC" in page
        assert "Held 4.16 USDC" in page
    assert (everything(), state_of(task), owner.balance_micros) == (before, "unknown", 95_840_000)


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("never_received_refund", "never_received"),
        ("fail_and_refund", "closed_by_support"),
        ("never_received_resend", "sending_again"),
    ],
)
def test_the_sentence_shown_before_is_the_one_the_user_reads_after(
    staff: Client, unknown_task: Any, action: str, expected: str
) -> None:
    owner, task = unknown_task
    page = text_of(staff.get(action_page(task.pk, action)))
    promised = page.partition("What the user will read English ")[2]
    act(staff, task, action)
    told = makers.represent(owner, task.client_id)["message"]
    assert promised.startswith(told["text"].replace("\N{NO-BREAK SPACE}", " "))
    assert told["code"] == expected


def test_fail_and_refund_returns_all_money_with_reason_and_actor(staff: Client, unknown_task: Any) -> None:
    owner, task = unknown_task
    page = text_of(staff.get(action_page(task.pk, "fail_and_refund")))
    assert "Available to the owner 95.84 USDC 100.00 USDC" in page
    assert "Held 4.16 USDC 0.00 USDC" in page
    answer = act(staff, task, "fail_and_refund")
    assert "The task is closed and all its money returned." in text_of(answer)
    assert (state_of(task), owner.balance_micros) == ("failed", 100_000_000)
    evidence = Evidence.objects.get(task_id=task.pk, kind="person")
    assert (evidence.source, evidence.reason) == ("ann", "the provider's ticket 17")
    assert Transfer.objects.get(charge_id=task.pk, kind="refund").actor == "ann"
    assert violations() == []


def test_never_received_can_be_refunded(staff: Client, unknown_task: Any) -> None:
    owner, task = unknown_task
    act(staff, task, "never_received_refund")
    assert (state_of(task), owner.balance_micros) == ("failed", 100_000_000)
    assert VideoTask.objects.get(pk=task.pk).error_code == "never_received"
    assert violations() == []


def test_never_received_can_be_sent_again_and_is_charged_once(
    staff: Client, unknown_task: Any, simulator: Any
) -> None:
    owner, task = unknown_task
    assert simulator.count() == 0
    act(staff, task, "never_received_resend")
    assert (state_of(task), owner.balance_micros) == ("submitting", 95_840_000)
    makers.work()
    assert (state_of(task), owner.balance_micros, simulator.count()) == ("completed", 95_840_000, 1)
    assert violations() == []


def test_an_upstream_id_is_adopted_and_the_task_goes_on(staff: Client, simulator: Any) -> None:
    owner = makers.make_owner()
    simulator.add_fault({"drop_after_accept": "reset"}, times=1)
    client_id = makers.submit(owner, model=makers.BLIND_MODEL)
    makers.work(1)
    task = makers.task_of(owner, client_id)
    (job,) = simulator.jobs()
    answer = act(staff, task, "adopt", upstream_id=job["id"] if "id" in job else job["request_id"])
    assert "The task runs on this job now." in text_of(answer)
    assert state_of(task) == "processing"
    makers.work()
    assert (state_of(task), owner.balance_micros, simulator.count()) == ("completed", 95_840_000, 1)
    assert violations() == []


def test_an_upstream_id_of_another_task_is_not_adopted(
    staff: Client, unknown_task: Any, completed_task: Any
) -> None:
    _, task = unknown_task
    taken = Attempt.objects.get(task_id=completed_task[1].pk)
    before = everything()
    answer = act(staff, task, "adopt", upstream_id=str(taken.upstream_id))
    assert "This upstream id belongs to another task. Nothing was changed." in text_of(answer)
    assert (state_of(task), everything()) == ("unknown", before)


def test_what_is_no_id_is_not_adopted(staff: Client, unknown_task: Any) -> None:
    _, task = unknown_task
    before = everything()
    for upstream_id in ("", "two words", "x" * 129):
        assert act(staff, task, "adopt", upstream_id=upstream_id).status_code == 200
    assert (state_of(task), everything()) == ("unknown", before)


def test_without_a_reason_nothing_happens(staff: Client, unknown_task: Any) -> None:
    owner, task = unknown_task
    before = everything()
    for action in ACTIONS:
        for reason in ("", "   "):
            page = text_of(act(staff, task, action, reason=reason, upstream_id="some-job-id"))
            assert "This field is required." in page
    assert (state_of(task), everything(), owner.balance_micros) == ("unknown", before, 95_840_000)


def test_who_may_only_read_may_not_act(reader: Client, user: Client, unknown_task: Any) -> None:
    _, task = unknown_task
    before = everything()
    assert reader.get(task_page(task.pk)).status_code == 200
    assert "your account may only read." in text_of(reader.get(task_page(task.pk)))
    for action in ACTIONS:
        assert reader.get(action_page(task.pk, action)).status_code == 403
        assert reader.post(action_page(task.pk, action), FILLED).status_code == 403
        assert user.post(action_page(task.pk, action), FILLED, follow=True).status_code == 403
        assert Client().post(action_page(task.pk, action), FILLED).status_code == 302
    assert reader.post(goodwill_page(task.pk), FILLED).status_code == 403
    assert (state_of(task), everything()) == ("unknown", before)


def test_an_action_without_the_csrf_token_is_refused(ann: Any, unknown_task: Any) -> None:
    _, task = unknown_task
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)
    assert client.post(action_page(task.pk, "fail_and_refund"), FILLED).status_code == 403
    assert state_of(task) == "unknown"


def test_an_outdated_page_changes_nothing(staff: Client, unknown_task: Any) -> None:
    """Staff looked at an unknown task; meanwhile it was found and runs."""
    owner, task = unknown_task
    desk.adopt_upstream_id(
        task_id=task.pk, upstream_id="found-job-1", actor="bob", reason="found", now=timezone.now()
    )
    before = everything()
    page = text_of(act(staff, task, "fail_and_refund"))
    assert "The task has become processing since this page was shown. Nothing was changed." in page
    assert (state_of(task), everything(), owner.balance_micros) == ("processing", before, 95_840_000)


def test_a_final_task_is_never_reopened(staff: Client, completed_task: Any) -> None:
    owner, task = completed_task
    before = everything()
    for action in ACTIONS:
        looked = staff.get(action_page(task.pk, action), follow=True)
        acted = act(staff, task, action, state_shown="completed", upstream_id="some-job-id")
        assert desk.allowed_actions(task)[action] in text_of(looked)
        assert desk.allowed_actions(task)[action] in text_of(acted)
    assert (state_of(task), everything(), owner.balance_micros) == ("completed", before, 95_840_000)


def test_an_action_that_does_not_exist_is_not_found(staff: Client, unknown_task: Any) -> None:
    assert staff.get(action_page(unknown_task[1].pk, "erase")).status_code == 404


# --- goodwill -------------------------------------------------------------------------------------


def fill_goodwill(client: Client, task: Any, amount: str = "1.5", **given: str) -> dict[str, str]:
    """The form as the page gives it, filled in."""
    page = client.get(goodwill_page(task.pk)).content.decode()
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
    return {**hidden, "amount": amount, "reason": "a broken soundtrack", **given}


def give(client: Client, task: Any, form: dict[str, str], micros: str = "1500000") -> Any:
    return client.post(
        goodwill_page(task.pk), {**form, "amount_previewed": micros, "confirm": "yes"}, follow=True
    )


def test_goodwill_is_shown_first_and_given_on_the_second_step(staff: Client, completed_task: Any) -> None:
    owner, task = completed_task
    form = fill_goodwill(staff, task)
    shown = text_of(staff.post(goodwill_page(task.pk), {**form, "preview": "yes"}))
    assert "Available to the owner 95.84 USDC 97.34 USDC" in shown
    assert owner.balance_micros == 95_840_000
    answer = give(staff, task, form)
    assert "1.50 USDC was returned." in text_of(answer)
    assert owner.balance_micros == 97_340_000
    told = makers.represent(owner, task.client_id)["message"]["text"].replace("\N{NO-BREAK SPACE}", " ")
    assert f"What the user will read English {told}" in shown
    transfer = Transfer.objects.get(kind="goodwill")
    assert (transfer.actor, transfer.note, transfer.amount_micros) == (
        "ann",
        "a broken soundtrack",
        1_500_000,
    )
    assert violations() == []


def test_the_same_goodwill_form_sent_twice_gives_once(staff: Client, completed_task: Any) -> None:
    owner, task = completed_task
    form = fill_goodwill(staff, task)
    give(staff, task, form)
    assert "This form had returned 1.50 USDC; nothing was added." in text_of(give(staff, task, form))
    assert owner.balance_micros == 97_340_000


def test_two_staff_who_saw_the_same_page_do_not_both_give(staff: Client, completed_task: Any) -> None:
    owner, task = completed_task
    first, second = fill_goodwill(staff, task), fill_goodwill(staff, task)
    give(staff, task, first)
    answer = text_of(give(staff, task, second))
    assert "What was returned has changed since this page was shown; nothing was changed." in answer
    assert owner.balance_micros == 97_340_000


def test_an_amount_changed_after_it_was_shown_is_shown_again(staff: Client, completed_task: Any) -> None:
    owner, task = completed_task
    form = fill_goodwill(staff, task, amount="4")
    answer = text_of(give(staff, task, form))
    assert "Available to the owner 95.84 USDC 99.84 USDC" in answer
    assert owner.balance_micros == 95_840_000


def test_an_amount_that_cannot_be_given_is_refused(staff: Client, completed_task: Any) -> None:
    owner, task = completed_task
    for amount in ("4.16000001", "4.17", "0", "-1", "1e3", "NaN", "", "1,5", "9" * 40):
        form = fill_goodwill(staff, task, amount=amount)
        assert staff.post(goodwill_page(task.pk), {**form, "preview": "yes"}).status_code == 200
        give(staff, task, form, micros="4170000")
    assert Transfer.objects.filter(kind="goodwill").count() == 0
    assert owner.balance_micros == 95_840_000


def test_goodwill_needs_a_settled_charge(staff: Client, unknown_task: Any) -> None:
    owner, task = unknown_task
    answer = give(staff, task, fill_goodwill(staff, task))
    assert "nothing was changed." in text_of(answer)
    assert (owner.balance_micros, Transfer.objects.filter(kind="goodwill").count()) == (95_840_000, 0)


def test_goodwill_after_a_deletion_shows_in_the_tombstone(staff: Client, completed_task: Any) -> None:
    owner, task = completed_task
    deletion.delete_task(owner_id=owner.id, client_id=task.client_id, now=timezone.now())
    give(staff, task, fill_goodwill(staff, task))
    assert owner.balance_micros == 97_340_000
    gone = makers.get(owner, task.client_id).json()
    assert (gone["status"], gone["charge"]["refunded"]) == (410, "1.500000")
    assert violations() == []
