"""The pages of videos: the composer with the list, and one video. They work without JavaScript."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.models import User
from billing import queries as billing_queries
from core import cursors, db
from core.errors import DomainError, Invalid, OutcomeNotKnown
from core.ids import canonical_client_id, new_id
from core.messages import Duration, Money
from core.money import to_amount
from videos import deletion, operations, presentation, queries
from videos.api import page_of, represent_models
from videos.composer import compose, draft_of, fields_of
from videos.errors import IdReused, NotCancellable, NotDeletable, NotReceived
from videos.events import timeline_of, transfers_of
from videos.messages import browser_messages, describe_refusal
from videos.messages import render as render_message
from videos.problems import describe_error
from videos.queries import ListFilter, TaskView
from videos.requests import read_request

CARDS_A_PAGE = 24
RUNNING_SHOWN = 100  # as many as one bulk read asks for
GROUPS = ("running", "ready", "failed")


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def index(request: HttpRequest) -> HttpResponse:
    """The video page; a POST orders, quotes, or asks back."""
    if request.method == "POST":
        return _order(request)
    if "again" in request.GET:
        return _page(request, draft_of(_view(request, request.GET["again"])))
    return _page(request, {"prompt": request.GET.get("prompt", "")})


def _order(request: HttpRequest) -> HttpResponse:
    owner, now = _owner(request), timezone.now()
    values = request.POST.dict()
    if "quote" in values:
        return _page(request, values)
    try:
        fields = fields_of(values)
        if (question := _question(owner, fields, values, now)) is not None:
            return _page(request, values, same_request=question, status=409)
        submitted = operations.submit_video(owner_id=owner.pk, fields=fields, token=None, now=now)
    except IdReused as error:
        # The browser restored an older form and its text was edited: another request, under a new id.
        return _refused(request, {**values, "id": str(new_id())}, error)
    except DomainError as error:
        return _refused(request, values, error)
    view = submitted.view
    text = render_message(presentation.message_of(view, now))
    if view.task is None or view.task.error_code == "insufficient_balance":
        return _page(request, {**values, "id": str(new_id())}, errors={"form": text}, status=402)
    if not submitted.is_new:
        messages.info(request, render_message(describe_refusal("replay")))
    return redirect(f"/videos/#{view.claim.client_id}")


def _question(owner: User, fields: Mapping[str, Any], values: Mapping[str, str], now: datetime) -> str | None:
    """Ask before paying for what is running already: going back without JavaScript makes a new id."""
    asked = read_request(fields)
    if values.get("confirm_same") == "yes":
        return None
    if queries.view_of(owner_id=owner.pk, client_id=asked.client_id) is not None:
        return None
    twin = queries.unfinished_twin(owner_id=owner.pk, request_hash=asked.request_hash)
    if twin is None:
        return None
    price = operations.quote_order(fields=fields).amount_micros
    sentence = browser_messages(get_language())["same_request"]
    elapsed = Duration(int((now - twin.created_at).total_seconds()))
    return sentence.format(elapsed=elapsed.text(), price=Money(price, settings.BILLING_CURRENCY).text())


def _refused(request: HttpRequest, values: Mapping[str, str], error: DomainError) -> HttpResponse:
    message, members = describe_error(error)
    field = str(members.get("field", "form"))
    text = render_message(message)
    return _page(request, values, errors={field: text, "form": text}, status=error.status)


def _page(
    request: HttpRequest,
    values: Mapping[str, Any],
    *,
    errors: Mapping[str, str] | None = None,
    same_request: str = "",
    status: int = 200,
) -> HttpResponse:
    owner, now = _owner(request), timezone.now()
    chosen = ListFilter(
        group=group if (group := request.GET.get("state", "")) in GROUPS else "all",
        model=request.GET.get("model", "").replace("\x00", "")[:64],
        words=request.GET.get("q", "").replace("\x00", "")[:200],
    )
    models = represent_models(with_drills=settings.DEBUG)
    finished = _finished(owner, chosen, request.GET.get("cursor", ""), now)
    running = _running(owner, chosen, now) if "cursor" not in request.GET else []
    context = {
        "composer": compose(
            values=values,
            models=models,
            balance=billing_queries.balance_of(owner.pk),
            errors=errors or {},
            same_request=same_request,
        ),
        "running": running,
        "finished": finished["results"],
        "next_cursor": finished["next_cursor"],
        "filters": {"state": group, "model": chosen.model, "q": chosen.words},
        "is_filtered": chosen != ListFilter(),
        **_script_context(owner, models),
    }
    return render(request, "videos/index.html", context, status=status)


def _running(owner: User, chosen: ListFilter, now: datetime) -> list[dict[str, Any]]:
    if chosen.group not in ("all", "running"):
        return []
    wanted = replace(chosen, group="running")
    views = queries.list_views(owner_id=owner.pk, chosen=wanted, limit=RUNNING_SHOWN)
    return [_card(presentation.represent_task(view, now)) for view in views]


def _finished(owner: User, chosen: ListFilter, cursor: str, now: datetime) -> dict[str, Any]:
    if chosen.group == "running":
        return {"results": [], "next_cursor": None}
    try:
        before = cursors.decode(cursor)
    except Invalid:
        before = None  # a mangled link shows the first page
    wanted = replace(chosen, group="finished" if chosen.group == "all" else chosen.group)
    views = queries.list_views(owner_id=owner.pk, chosen=wanted, limit=CARDS_A_PAGE + 1, before=before)
    page = page_of(views, CARDS_A_PAGE, now)
    return {**page, "results": [_card(task) for task in page["results"]]}


def _card(task: dict[str, Any]) -> dict[str, Any]:
    """A task of the API with its time as templates format it."""
    return {**task, "created_at": parse_datetime(task["created_at"])}


def _script_context(owner: User, models: list[dict[str, Any]]) -> dict[str, Any]:
    language = get_language() or "en"
    balance = billing_queries.balance_of(owner.pk)
    return {
        "page": {
            "owner": str(owner.pk),
            "owner_name": owner.get_username(),
            "currency": settings.BILLING_CURRENCY,
            "language": language,
            "models": models,
            "balance": {
                "balance": to_amount(balance.available_micros),
                "held": to_amount(balance.held_micros),
            },
        },
        "strings": browser_messages(language),
    }


@login_required
@never_cache
@require_GET
def detail(request: HttpRequest, client_id: str) -> HttpResponse:
    """One video: what happened, the money, the settings; a receipt when printed."""
    owner, now = _owner(request), timezone.now()
    view = _view(request, client_id)
    if view.task is None:
        return _gone(request, view, now)
    context = {
        "task": _card(presentation.represent_task(view, now)),
        "timeline": timeline_of(view),
        "transfers": transfers_of(view),
        "currency": settings.BILLING_CURRENCY,
        **_script_context(owner, represent_models(with_drills=settings.DEBUG)),
    }
    return render(request, "videos/detail.html", context)


@login_required
@never_cache
@require_POST
def cancel(request: HttpRequest, client_id: str) -> HttpResponse:
    view = _view(request, client_id)
    if view.task is None:
        return _gone(request, view, timezone.now())
    if "confirmed" not in request.POST:
        return _confirm(request, view, "cancel")
    try:
        with db.commit_in_doubt():
            operations.cancel(owner_id=_owner(request).pk, client_id=view.claim.client_id, now=timezone.now())
    except OutcomeNotKnown:
        messages.warning(request, render_message(describe_refusal("outcome_unknown")))
    except NotCancellable:
        now = timezone.now()
        refusal = describe_refusal("not_cancellable", task=presentation.message_of(view, now))
        messages.warning(request, render_message(refusal))
    except NotReceived:
        pass  # deleted in another tab this moment: its own page says so
    return redirect(f"/videos/{view.claim.client_id}/")


@login_required
@never_cache
@require_POST
def delete(request: HttpRequest, client_id: str) -> HttpResponse:
    view = _view(request, client_id)
    if view.task is None:
        return _gone(request, view, timezone.now())
    if "confirmed" not in request.POST:
        return _confirm(request, view, "delete")
    try:
        with db.commit_in_doubt():
            deletion.delete_task(
                owner_id=_owner(request).pk, client_id=view.claim.client_id, now=timezone.now()
            )
    except OutcomeNotKnown:
        messages.warning(request, render_message(describe_refusal("outcome_unknown")))
        return redirect("/videos/")
    except NotDeletable:
        refusal = describe_refusal(
            "not_deletable", currency=settings.BILLING_CURRENCY, amount=view.charged_micros
        )
        messages.warning(request, render_message(refusal))
        return redirect(f"/videos/{view.claim.client_id}/")
    messages.success(request, _("The video was deleted; your balance does not change."))
    return redirect("/videos/")


def _gone(request: HttpRequest, view: TaskView, now: datetime) -> HttpResponse:
    """What is left of a video that was deleted, or of an id that was withdrawn."""
    text = render_message(presentation.message_of(view, now))
    return render(request, "videos/gone.html", {"sentence": text}, status=410)


def _confirm(request: HttpRequest, view: TaskView, action: str) -> HttpResponse:
    task = view.task
    if task is None:
        raise Http404
    now = timezone.now()
    if action == "delete":
        sentence = _("The video and its record are removed for good; your balance does not change.")
    else:
        sent = task.state != "submitting"
        row = browser_messages(get_language())["cancel_running" if sent else "cancel_not_sent"]
        sentence = row.format(amount=Money(view.charged_micros, settings.BILLING_CURRENCY).text())
    card = _card(presentation.represent_task(view, now))
    context = {"task": card, "action": action, "sentence": sentence}
    return render(request, "videos/confirm.html", context)


def _owner(request: HttpRequest) -> User:
    user = request.user
    if not isinstance(user, User):
        raise Http404
    return user


def _view(request: HttpRequest, client_id: str) -> TaskView:
    canonical = canonical_client_id(client_id)
    view = canonical and queries.view_of(owner_id=_owner(request).pk, client_id=canonical)
    if not view:
        raise Http404
    return view
