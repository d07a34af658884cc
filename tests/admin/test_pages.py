"""Every admin page: who may see it, what it shows, that it changes nothing and works under our CSP."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin import site
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import ApiToken
from billing.models import Account, Charge, Transfer
from core.admin import MOST_COUNTED, BoundedPaginator, ReadOnlyAdmin
from tests import makers
from tests.admin.pages import goodwill_page, task_page, text_of
from tombstones.models import Claim
from videos import deletion, operations
from videos.models import Attempt, AttemptPayload, ProviderStatus, VideoTask

pytestmark = pytest.mark.django_db

MODELS = (
    *("accounts_user", "accounts_apitoken", "billing_account", "billing_charge", "billing_priceversion"),
    *("billing_transfer", "tombstones_claim", "videos_attempt", "videos_orphanjob"),
    *("videos_providerstatus", "videos_videotask"),
)


def list_page(name: str, **query: str) -> str:
    return reverse(f"admin:{name}_changelist", query=query) if query else reverse(f"admin:{name}_changelist")


def rows_of(response: Any) -> list[Any]:
    return list(response.context["cl"].result_list)


def detail_pages(owner: makers.Owner, task: VideoTask) -> list[str]:
    transfer = Transfer.objects.filter(charge_id=task.pk).first()
    attempt = Attempt.objects.get(task_id=task.pk)
    assert transfer is not None
    keys = {
        "accounts_user": owner.id,
        "accounts_apitoken": ApiToken.objects.get(user_id=owner.id).pk,
        "billing_account": owner.id,
        "billing_charge": task.pk,
        "billing_priceversion": Charge.objects.get(pk=task.pk).price_version_id,
        "billing_transfer": transfer.pk,
        "tombstones_claim": task.pk,
        "videos_attempt": attempt.pk,
        "videos_videotask": task.pk,
    }
    return [reverse(f"admin:{name}_change", args=[key]) for name, key in keys.items()]


def test_the_site_shows_our_models_and_no_form_that_writes_rows() -> None:
    names = {f"{model._meta.app_label}_{model._meta.model_name}" for model in site._registry}
    assert names == set(MODELS)
    assert all(isinstance(page, ReadOnlyAdmin) for page in site._registry.values())


def test_staff_see_every_list(staff: Client, completed_task: Any) -> None:
    for name in MODELS:
        assert staff.get(list_page(name)).status_code == 200


def test_nobody_adds_by_form(staff: Client) -> None:
    for name in MODELS:
        assert staff.get(f"{list_page(name)}add/").status_code == 403
        assert staff.post(f"{list_page(name)}add/", {}).status_code == 403


def test_staff_see_every_page_and_none_of_them_changes_a_row(staff: Client, completed_task: Any) -> None:
    owner, task = completed_task
    for address in detail_pages(owner, task):
        assert staff.get(address).status_code == 200, address
        if address != task_page(task.pk):
            assert staff.post(address, {"balance_micros": "1", "username": "x"}).status_code == 403, address
            assert staff.post(address.replace("/change/", "/delete/"), {"post": "yes"}).status_code == 403
    assert owner.balance_micros == 100_000_000 - makers.PRICE_MICROS
    assert VideoTask.objects.get(pk=task.pk).state == "completed"


def test_strangers_are_sent_to_sign_in_and_users_are_refused(user: Client, completed_task: Any) -> None:
    owner, task = completed_task
    for address in [reverse("admin:index"), *map(list_page, MODELS), *detail_pages(owner, task)]:
        answer = Client().get(address)
        assert (answer.status_code, answer["Location"].split("?")[0]) == (302, reverse("admin:login"))
        signed_in = user.get(address, follow=True)
        assert signed_in.status_code == 403, address
        assert task.client_id not in signed_in.content.decode()


def test_staff_sign_in_where_everybody_does(db: None) -> None:
    answer = Client().get(reverse("admin:login"), {"next": "/admin/videos/"})
    assert (answer.status_code, answer["Location"]) == (302, "/accounts/login/?next=/admin/videos/")


def test_a_token_never_shows_its_digest_and_a_user_no_hash(staff: Client, completed_task: Any) -> None:
    owner, _ = completed_task
    token = ApiToken.objects.get(user_id=owner.id)
    for address in (
        list_page("accounts_apitoken"),
        reverse("admin:accounts_apitoken_change", args=[token.pk]),
        reverse("admin:accounts_user_change", args=[owner.id]),
    ):
        page = staff.get(address).content.decode()
        assert owner.user.username in page
        for secret in (token.digest, owner.key, owner.user.password):
            assert secret not in page


def test_a_list_asks_as_much_for_many_rows_as_for_few(staff: Client, simulator: Any) -> None:
    def fill() -> None:
        owner = makers.make_owner()
        makers.submit(owner)
        makers.work()

    def counts() -> dict[str, int]:
        found = {}
        for name in MODELS:
            with CaptureQueriesContext(connection) as queries:
                staff.get(list_page(name))
            found[name] = len(queries)
        return found

    fill()
    few = counts()
    fill()
    fill()
    assert counts() == few
    assert max(few.values()) <= 6


def test_a_list_counts_no_further_than_its_limit() -> None:
    class Rows(list):
        def values_list(self, name: str) -> "Rows":
            return self

    assert BoundedPaginator(Rows(range(MOST_COUNTED + 7)), 50).count == MOST_COUNTED
    assert BoundedPaginator(Rows(range(3)), 50).count == 3


def test_a_task_is_found_by_each_of_its_names(staff: Client, completed_task: Any) -> None:
    owner, task = completed_task
    type(owner.user).objects.filter(pk=owner.id).update(email="Una@oncereel.example")
    other = makers.make_owner()
    makers.submit(other)
    words = {
        "client_id": task.client_id,
        "task": str(task.pk),
        "name": owner.user.username,
        "email": "una@ONCEREEL.example",
        "owner": str(owner.id),
        "upstream_id": Attempt.objects.get(task_id=task.pk).upstream_id,
        "reference": Transfer.objects.get(charge_id=task.pk, kind="settle").reference,
        "spelled_otherwise": f"  {{{task.client_id.upper()}}} ",
    }
    for name, text in words.items():
        assert rows_of(staff.get(list_page("videos_videotask", q=str(text)))) == [task], name


def test_what_nobody_has_finds_nothing(staff: Client, completed_task: Any) -> None:
    for words in ("nobody", "%", "' OR 1=1 --", "0" * 300):
        for name in MODELS:
            answer = staff.get(list_page(name, q=words))
            assert answer.status_code == 200, (name, words)
            assert rows_of(answer) == [], (name, words)
    assert staff.get(list_page("accounts_user", q="\x00")).status_code == 200


def test_other_lists_are_searched_by_what_their_rows_carry(staff: Client, completed_task: Any) -> None:
    owner, task = completed_task
    makers.make_owner()
    for name, words, count in (
        ("billing_transfer", str(task.pk), 2),
        ("billing_charge", str(owner.id), 1),
        ("billing_account", owner.user.username, 1),
        ("videos_attempt", str(Attempt.objects.get(task_id=task.pk).upstream_id), 1),
        ("tombstones_claim", task.client_id, 1),
        ("accounts_apitoken", owner.user.username, 1),
    ):
        assert len(rows_of(staff.get(list_page(name, q=words)))) == count, name


def test_the_task_page_tells_the_user_s_own_sentence_in_both_languages(
    staff: Client, completed_task: Any
) -> None:
    owner, task = completed_task
    told = makers.represent(owner, task.client_id)["message"]["text"].replace("\N{NO-BREAK SPACE}", " ")
    page = text_of(staff.get(task_page(task.pk)))
    assert told == "Your video is ready; 4.16 USDC was charged."
    assert told in page
    assert "视频已完成；已扣费 4.16 USDC。" in page
    assert "Ready Charged 4.16" in page
    assert "attempt 1: accepted" in page
    assert "settle 4.16 USDC" in page
    assert "submitting → processing" in page
    assert "Fail and refund : The task has ended; final states never reopen." in page


def test_the_timeline_is_in_the_order_of_time(staff: Client, completed_task: Any) -> None:
    _, task = completed_task
    page = staff.get(task_page(task.pk)).content.decode()
    times = re.findall(r'<td><time datetime="([^"]+)"', page)
    assert times == sorted(times)
    assert len(times) >= 7


def test_a_deleted_task_still_has_its_page_and_its_money(staff: Client, completed_task: Any) -> None:
    owner, task = completed_task
    deletion.delete_task(owner_id=owner.id, client_id=task.client_id, now=timezone.now())
    page = text_of(staff.get(task_page(task.pk)))
    assert "Deleted" in page
    assert "4.16 USDC had been charged" in page
    assert "a cat on a roof" not in page
    assert "Fail and refund : The task was deleted." in page


def test_an_id_that_never_was_has_no_page(staff: Client, completed_task: Any) -> None:
    assert staff.get(task_page("01890000-0000-7000-8000-000000000000")).status_code == 404
    assert staff.get(task_page("nonsense")).status_code == 404


def test_a_fenced_id_has_a_page_that_says_so(staff: Client, completed_task: Any) -> None:
    owner, _ = completed_task
    client_id = makers.new_client_id()
    operations.abandon(owner_id=owner.id, client_id=client_id, now=timezone.now())
    claim = Claim.objects.get(owner_id=owner.id, client_id=client_id)
    page = text_of(staff.get(task_page(claim.pk)))
    assert "This request was not accepted and will not be accepted any more; nothing was charged." in page
    assert "Not charged." in page


def test_what_a_provider_or_user_wrote_is_text_and_never_markup(staff: Client, completed_task: Any) -> None:
    owner, task = completed_task
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    VideoTask.objects.filter(pk=task.pk).update(error_detail=evil)
    attempt = Attempt.objects.get(task_id=task.pk)
    AttemptPayload.objects.filter(attempt=attempt).update(response_body=evil)
    Attempt.objects.filter(pk=attempt.pk).update(reason=evil[:60])
    type(task.payload).objects.filter(task=task).update(prompt=evil)
    type(owner.user).objects.filter(pk=owner.id).update(username=evil)
    addresses = [*detail_pages(owner, task), *map(list_page, MODELS)]
    for address in addresses:
        page = staff.get(address).content.decode()
        assert "<script>alert" not in page, address
        assert "<img src=x" not in page, address
    assert staff.get(task_page(task.pk)).content.decode().count("&lt;script&gt;alert(1)") >= 3


def test_pages_work_without_inline_scripts_and_styles(staff: Client, completed_task: Any) -> None:
    owner, task = completed_task
    addresses = [reverse("admin:index"), *detail_pages(owner, task), *map(list_page, MODELS)]
    for address in addresses:
        answer = staff.get(address)
        assert "'unsafe-inline'" not in answer["Content-Security-Policy"]
        page = answer.content.decode()
        assert re.findall(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>", page) == [], address
        assert re.findall(r"<[^>]+\s(?:style|on[a-z]+)=", page) == [], address
        assert "<style" not in page, address


def test_the_front_shows_what_waits_since_when_and_how_much_is_held(staff: Client, unknown_task: Any) -> None:
    _, task = unknown_task
    page = text_of(staff.get(reverse("admin:index")))
    assert "Unclear 1 , the oldest since" in page
    assert "4.16 USDC held" in page
    assert "Needs review Nothing waits." in page
    assert "Stuck Nothing waits." in page
    assert "Provider alarms Nothing waits." in page
    makers.age([task.client_id], first_unclear_at=timedelta(hours=2))
    page = text_of(staff.get(reverse("admin:index")))
    assert "Needs review 1 , the oldest since" in page
    found = rows_of(staff.get(list_page("videos_videotask", queue="review")))
    assert found == [task]
    assert rows_of(staff.get(list_page("videos_videotask", queue="stuck"))) == []
    assert rows_of(staff.get(list_page("videos_videotask", state="unknown", provider="fal_blind"))) == [task]
    assert rows_of(staff.get(list_page("videos_videotask", state="completed"))) == []


def test_a_provider_alarm_is_on_the_front_with_the_money_that_waits(staff: Client, simulator: Any) -> None:
    owner = makers.make_owner()
    makers.submit(owner)
    now = timezone.now()
    ProviderStatus.objects.update_or_create(
        provider="fal", defaults={"alarm": "account:locked", "alarm_since": now, "probe_at": now}
    )
    page = text_of(staff.get(reverse("admin:index")))
    assert "Provider alarms 1 , the oldest since" in page
    assert "4.16 USDC held" in page
    assert "account:locked" in text_of(staff.get(list_page("videos_providerstatus")))


def test_what_a_provider_did_not_say_is_not_reported_instead_of_0(staff: Client, unknown_task: Any) -> None:
    _, task = unknown_task
    page = text_of(staff.get(task_page(task.pk)))
    assert "upstream id: not reported · HTTP: not reported · used: not reported" in page
    attempt = Attempt.objects.get(task_id=task.pk)
    page = text_of(staff.get(reverse("admin:videos_attempt_change", args=[attempt.pk])))
    assert "Usage units: not reported" in page


def test_pages_say_in_which_zone_their_times_are(staff: Client, completed_task: Any) -> None:
    for address in (list_page("videos_videotask"), task_page(completed_task[1].pk)):
        assert "Times without a zone are UTC." in text_of(staff.get(address))


def test_no_filter_counts_its_rows(staff: Client, completed_task: Any) -> None:
    page = text_of(staff.get(list_page("videos_videotask", _facets="True")))
    assert "completed (" not in page
    assert "Show counts" not in page


def test_an_account_shows_balance_and_held_sum(staff: Client, unknown_task: Any) -> None:
    owner, _ = unknown_task
    page = text_of(staff.get(reverse("admin:billing_account_change", args=[owner.id])))
    assert "Available: 95.84 USDC" in page
    assert "Held for running videos: 4.16 USDC" in page
    assert Account.objects.get(pk=owner.id).balance_micros == 95_840_000


def test_the_page_of_a_charge_leads_to_goodwill_only_when_it_is_settled(
    staff: Client, completed_task: Any, unknown_task: Any
) -> None:
    settled, held = completed_task[1], unknown_task[1]
    page = staff.get(reverse("admin:billing_charge_change", args=[settled.pk])).content.decode()
    assert f'href="{goodwill_page(settled.pk)}"' in page
    page = staff.get(reverse("admin:billing_charge_change", args=[held.pk])).content.decode()
    assert "Only a settled charge can be returned in part." in page
    assert goodwill_page(held.pk) not in page
