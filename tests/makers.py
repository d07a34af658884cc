"""Builds data through the product's own operations, so that no test starts from an impossible state."""

import uuid
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

from django.test import Client
from django.utils import timezone

from accounts import operations as accounts
from accounts.models import ApiToken, User
from accounts.queries import token_of_key
from billing import operations as billing
from billing.models import Account
from core.money import parse_amount
from videos import operations, presentation, queries
from videos.engine import dispatch, late, polling, results, sweeping, unknowns
from videos.models import Attempt, VideoTask, WebhookCall
from videos.prices import load_list_prices
from videos.queries import TaskView

MODEL = "veo3.1"
BLIND_MODEL = "veo3.1-blind"  # the same wire with every capability flag off (contract P5)
PRICE_MICROS = 4_160_000  # veo3.1, 8 s, 720p, with sound: 8 × 0.40 × 1.3
_numbers = count(1)


@dataclass(frozen=True)
class Owner:
    """A person with a token and an API client that uses it."""

    user: User
    key: str
    api: Client

    @property
    def id(self) -> uuid.UUID:
        return self.user.pk

    @property
    def token(self) -> ApiToken:
        token = token_of_key(self.key)
        assert token is not None
        return token

    @property
    def balance_micros(self) -> int:
        account = Account.objects.filter(pk=self.id).first()
        return account.balance_micros if account else 0


def make_owner(*, balance: str = "100", name: str | None = None, password: str = "correct horse") -> Owner:
    """An owner with money, a token, and prices to order by."""
    load_list_prices(now=timezone.now())
    username = name or f"owner-{next(_numbers)}-{uuid.uuid4().hex[:8]}"
    user = accounts.create_user(username=username, password=password)
    if parse_amount(balance):
        top_up(user, balance)
    key = accounts.create_token(user=user, name="tests", now=timezone.now())
    return Owner(user=user, key=key, api=Client(headers={"authorization": f"Token {key}"}))


def top_up(user: User, amount: str) -> None:
    billing.top_up(
        owner_id=user.pk,
        amount_micros=parse_amount(amount),
        reference=f"test-{uuid.uuid4()}",
        actor="tests",
        now=timezone.now(),
    )


def new_client_id() -> str:
    return str(uuid.uuid4())


def order(
    *, id: str | None = None, prompt: str = "a cat on a roof", model: str = MODEL, **fields: Any
) -> dict:
    """The JSON of a submission."""
    return {"id": id or new_client_id(), "model": model, "prompt": prompt, **fields}


def submit(owner: Owner, **fields: Any) -> str:
    """Order through the operation; the client id."""
    submitted = operations.submit_video(
        owner_id=owner.id, fields=order(**fields), token=None, now=timezone.now()
    )
    return submitted.view.claim.client_id


def post(owner: Owner, document: dict[str, Any]) -> Any:
    """Order over HTTP."""
    return owner.api.post("/api/videos", document, content_type="application/json")


def get(owner: Owner, client_id: str) -> Any:
    return owner.api.get(f"/api/videos/{client_id}")


def view(owner: Owner, client_id: str) -> TaskView:
    found = queries.view_of(owner_id=owner.id, client_id=client_id)
    assert found is not None
    return found


def task_of(owner: Owner, client_id: str) -> VideoTask:
    task = view(owner, client_id).task
    assert task is not None
    return task


def attempts_of(owner: Owner, client_id: str) -> list[Attempt]:
    return queries.attempts_of(view(owner, client_id).claim.pk)


def represent(owner: Owner, client_id: str) -> dict[str, Any]:
    return presentation.represent_task(view(owner, client_id), timezone.now())


def make_due() -> None:
    """Let the time until every next look pass at once. Leases that are held stay held."""
    past = timezone.now() - timedelta(seconds=1)
    VideoTask.objects.filter(next_check_at__isnull=False, lease_token__isnull=True).update(next_check_at=past)
    WebhookCall.objects.filter(check_at__isnull=False).update(check_at=past)
    Attempt.objects.filter(late_check_at__isnull=False).update(late_check_at=past)


def let_leases_run_out() -> None:
    """Let the time of every lease pass, as after a worker died."""
    past = timezone.now() - timedelta(seconds=1)
    VideoTask.objects.filter(lease_token__isnull=False).update(lease_until=past, next_check_at=past)


def age(client_ids: list[str], **columns: timedelta) -> None:
    """Move the given times of tasks into the past: `age([id], accepted_at=timedelta(hours=2))`."""
    for task in VideoTask.objects.filter(client_id__in=client_ids):
        VideoTask.objects.filter(pk=task.pk).update(
            **{name: getattr(task, name) - by for name, by in columns.items() if getattr(task, name)}
        )


def work_once() -> int:
    """One round of everything workers do, over whatever is due now; how much there was to do."""
    done = (
        dispatch.dispatch_due()
        + polling.poll_due()
        + results.store_due()
        + unknowns.check_unknown_due()
        + late.follow_late_jobs()
    )
    sweeping.sweep(now=timezone.now())
    return done


def work(rounds: int = 4) -> None:
    """Some rounds, with the waiting in between skipped."""
    for _ in range(rounds):
        make_due()
        work_once()
