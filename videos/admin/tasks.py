"""The page of a task and what staff may do on it: translate in, one operation, translate out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from billing import operations as billing
from billing.kinds import charge_state
from billing.models import Transfer
from billing.queries import balance_of
from core.admin import ReadOnlyAdmin, as_uuid, link_to, register
from core.errors import DomainError
from core.money import format_money
from videos import desk
from videos.admin import filters
from videos.admin.forms import ActionForm, AdoptForm, GoodwillForm
from videos.admin.previews import AFTER, preview, sentences_of, with_goodwill
from videos.admin.timeline import timeline_of
from videos.engine.binding import Bound
from videos.messages import absent_chip, money_chip, render, video_chip
from videos.models import Attempt, VideoTask
from videos.presentation import absent_code, facts_of
from videos.problems import describe_error
from videos.queries import TaskView, view_of_task

ACT = "videos.change_videotask"  # whoever may read may not by that alone move money


@dataclass(frozen=True, kw_only=True)
class Action:
    """An action as the desk offers it. `run` takes the operation's arguments and says what happened."""

    title: str
    explains: str
    run: Callable[..., str]
    form: type[ActionForm] = ActionForm


def _adopt(*, task_id: UUID, upstream_id: str, **by: Any) -> str:
    return {
        Bound.BOUND: "The task runs on this job now.",
        Bound.ALREADY: "This job was bound to the task before; nothing was changed.",
        Bound.SECOND: "The task has another job; this one is recorded as a second job, at no charge.",
        Bound.LATE: "The task had ended; the job is followed, and its video would be a gift.",
    }[desk.adopt_upstream_id(task_id=task_id, upstream_id=upstream_id, **by)]


def _resend(*, task_id: UUID, **by: Any) -> str:
    desk.declare_never_received(task_id=task_id, resend=True, **by)
    return "It is sent again under the same key; nothing more is charged."


def _never_received(*, task_id: UUID, **by: Any) -> str:
    desk.declare_never_received(task_id=task_id, resend=False, **by)
    return "The task is closed and all its money returned."


def _fail(*, task_id: UUID, **by: Any) -> str:
    desk.fail_and_refund(task_id=task_id, **by)
    return "The task is closed and all its money returned."


ACTIONS: dict[str, Action] = {
    "adopt": Action(
        title="Adopt an upstream id",
        explains="You found the provider's job of this task: the task goes on with it.",
        run=_adopt,
        form=AdoptForm,
    ),
    "never_received_resend": Action(
        title="Never received: send again",
        explains="The provider confirms that it never received this request: it is sent once more.",
        run=_resend,
    ),
    "never_received_refund": Action(
        title="Never received: fail and refund",
        explains="The provider confirms that it never received this request: it ends without a video.",
        run=_never_received,
    ),
    "fail_and_refund": Action(
        title="Fail and refund",
        explains="Close this task and return all its money. If the provider still makes the video, it is a "
        "gift at our cost.",
        run=_fail,
    ),
}
REFUSALS = {
    "goodwill_stale": "What was returned has changed since this page was shown; nothing was changed.",
    "not_resolvable": "Nothing is settled, or it would return more than was charged; nothing was changed.",
    "reference_reused": "This form has returned another amount before; nothing was changed.",
}


def refusal_of(error: DomainError) -> str:
    """What staff read when an operation refused."""
    if error.code == "action_refused":
        return f"{error.params['reason']} Nothing was changed."
    return REFUSALS.get(error.code) or render(describe_error(error)[0])


@register(VideoTask)
class VideoTaskAdmin(ReadOnlyAdmin):
    """Tasks; their page is told from the record, so it is there after a deletion too."""

    list_display = ("client_id", "person", "state", "money", "amount", "model", "provider", "created_at")
    list_filter = (filters.QueueFilter, filters.StateFilter, filters.ProviderFilter, filters.ModelFilter)
    list_select_related = ("owner", "claim__charge__resolution")

    @admin.display(description="owner")
    def person(self, task: VideoTask) -> SafeString | None:
        return link_to("accounts_user", task.owner_id, task.owner)

    @admin.display(description="money")
    def money(self, task: VideoTask) -> str:
        charge = getattr(task.claim, "charge", None)
        resolution = getattr(charge, "resolution", None)
        return charge_state(
            charged=charge.amount_micros if charge else None,
            outcome=resolution.outcome if resolution else None,
            returned=resolution.returned_micros if resolution else 0,
        ).value

    @admin.display(description="amount", empty_value="none")
    def amount(self, task: VideoTask) -> str | None:
        charge = getattr(task.claim, "charge", None)
        return format_money(charge.amount_micros, settings.BILLING_CURRENCY) if charge else None

    def matching(self, words: str, key: UUID | None, owners: Sequence[UUID]) -> Q:
        jobs = Attempt.objects.filter(upstream_id=words)
        kinds = [value for value, _ in Transfer._meta.get_field("kind").flatchoices]
        transfers = Transfer.objects.filter(kind__in=kinds, reference=words, charge_id__isnull=False)
        found = (
            Q(claim__client_id=str(key) if key else words)
            | Q(owner_id__in=owners)
            | Q(pk__in=jobs.values("task_id"))
            | Q(pk__in=transfers.values("charge_id"))
        )
        return found | Q(pk=key) if key else found

    def get_urls(self) -> list[URLPattern]:
        act = self.admin_site.admin_view(self.action_view)
        give = self.admin_site.admin_view(self.goodwill_view)
        return [
            path("<uuid:task_id>/goodwill/", give, name="videos_videotask_goodwill"),
            path("<uuid:task_id>/do/<slug:action>/", act, name="videos_videotask_action"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The page of a task, live or deleted."""
        view = _view_or_404(as_uuid(object_id))
        task, now = view.task, timezone.now()
        facts = facts_of(view, now) if task else None
        refusals = desk.allowed_actions(task) if task else dict.fromkeys(ACTIONS, "The task was deleted.")
        return self._page(
            request,
            "admin/videos/task.html",
            view,
            chips=[video_chip(facts), money_chip(facts)] if facts else [absent_chip(absent_code(view))],
            sentences=sentences_of(view, now),
            timeline=timeline_of(view),
            actions=[(name, action, refusals[name]) for name, action in ACTIONS.items()],
            attempts=Attempt.objects.filter(task_id=view.claim.pk).order_by("number"),
            may_act=request.user.has_perm(ACT),
            can_return=view.resolution is not None and view.returned_micros < view.charged_micros,
        )

    def action_view(self, request: HttpRequest, task_id: UUID, action: str) -> HttpResponse:
        """Confirm an action, having seen what it changes; then do it."""
        _require_right_to_act(request)
        view = _view_or_404(task_id)
        if action not in ACTIONS:
            raise Http404
        chosen, task, now = ACTIONS[action], view.task, timezone.now()
        refusal = desk.allowed_actions(task)[action] if task else "The task was deleted."
        form = chosen.form(request.POST or None, initial={"state_shown": task.state if task else ""})
        if request.method == "POST" and task and form.data.get("state_shown") != task.state:
            refusal = f"The task has become {task.state} since this page was shown."
        if refusal:
            messages.error(request, f"{refusal} Nothing was changed.")
            return _back(task_id)
        if request.method == "POST" and form.is_valid():
            given = {name: value for name, value in form.cleaned_data.items() if name != "state_shown"}
            by = {"actor": request.user.get_username(), "now": now}
            return self._do(request, task_id, lambda: chosen.run(task_id=task_id, **given, **by))
        shown = preview(
            before=view, after=AFTER[action](view, now), balance=balance_of(view.claim.owner_id), now=now
        )
        return self._page(
            request, "admin/videos/act.html", view,
            heading=chosen.title, explains=chosen.explains, form=form, preview=shown,
            is_previewed=True, sentences=sentences_of(view, now),
        )  # fmt: skip

    def goodwill_view(self, request: HttpRequest, task_id: UUID) -> HttpResponse:
        """Return part of a settled charge: amount and reason, then what it changes, then the deed."""
        _require_right_to_act(request)
        view = _view_or_404(task_id)
        now = timezone.now()
        form = GoodwillForm(request.POST or None, initial={"returned_shown_micros": view.returned_micros})
        shown = None
        if request.method == "POST" and form.is_valid():
            amount = form.cleaned_data["amount"]
            if form.is_confirmed(request.POST):
                return self._do(request, task_id, lambda: _give(form, task_id, request, now))
            if amount > view.charged_micros - view.returned_micros:
                form.add_error("amount", REFUSALS["not_resolvable"])
            else:
                after = with_goodwill(view, amount_micros=amount)
                balance = balance_of(view.claim.owner_id)
                shown = preview(before=view, after=after, balance=balance, now=now)
                form.data = {**request.POST.dict(), "amount_previewed": str(amount)}
        return self._page(
            request, "admin/videos/act.html", view,
            heading="Give goodwill", explains="Return part of what was charged, out of our revenue.",
            form=form, preview=shown, is_previewed=shown is not None, sentences=sentences_of(view, now),
        )  # fmt: skip

    def _do(self, request: HttpRequest, task_id: UUID, act: Callable[[], str]) -> HttpResponse:
        try:
            messages.success(request, act())
        except DomainError as refused:
            messages.error(request, refusal_of(refused))
        return _back(task_id)

    def _page(self, request: HttpRequest, template: str, view: TaskView, **context: Any) -> TemplateResponse:
        return TemplateResponse(
            request,
            template,
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "title": f"Task {view.claim.client_id}",
                "view": view,
                "currency": settings.BILLING_CURRENCY,
                **context,
            },
        )


def _give(form: GoodwillForm, task_id: UUID, request: HttpRequest, now: Any) -> str:
    was_new = billing.give_goodwill(
        charge_id=task_id,
        amount_micros=form.cleaned_data["amount"],
        returned_shown_micros=form.cleaned_data["returned_shown_micros"],
        reference=form.transfer_reference,
        actor=request.user.get_username(),
        reason=form.cleaned_data["reason"],
        now=now,
    )
    amount = format_money(form.cleaned_data["amount"], settings.BILLING_CURRENCY)
    return f"{amount} was returned." if was_new else f"This form had returned {amount}; nothing was added."


def _view_or_404(task_id: UUID | None) -> TaskView:
    view = view_of_task(task_id) if task_id else None
    if view is None:
        raise Http404
    return view


def _require_right_to_act(request: HttpRequest) -> None:
    if not request.user.has_perm(ACT):
        raise PermissionDenied


def _back(task_id: UUID) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("admin:videos_videotask_change", args=[task_id]))
