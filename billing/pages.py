"""The billing page: balance, what is held, and the statement."""

from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from accounts.models import User
from billing import queries
from billing.queries import StatementLine
from billing.words import kind_word
from core import cursors
from core.errors import Invalid

LINES_A_PAGE = 50


@login_required
@never_cache
@require_GET
def index(request: HttpRequest) -> HttpResponse:
    owner = request.user
    if not isinstance(owner, User):
        raise Http404
    balance = queries.balance_of(owner.pk)
    spent = queries.spent_this_month(owner_id=owner.pk, now=timezone.now())
    try:
        before = cursors.decode(request.GET.get("cursor", ""))
    except Invalid:
        before = None  # a mangled link shows the first page
    lines = queries.statement(
        owner_id=owner.pk, limit=LINES_A_PAGE + 1, before=before, with_settlements=False
    )
    last = lines[LINES_A_PAGE - 1].transfer if len(lines) > LINES_A_PAGE else None
    context = {
        "available_micros": balance.available_micros,
        "held_micros": balance.held_micros,
        "held_count": queries.held_count(owner.pk),
        "spent_micros": spent.charged_micros - spent.returned_micros,
        "returned_micros": spent.returned_micros,
        "currency": settings.BILLING_CURRENCY,
        "rows": [_row(line) for line in lines[:LINES_A_PAGE]],
        "next_cursor": cursors.encode(last.created_at, last.pk) if last else None,
    }
    return render(request, "billing/index.html", context)


def _row(line: StatementLine) -> dict[str, Any]:
    signs = {True: "+", False: "−"}
    kind = line.transfer.kind
    word = kind_word("settle" if kind == "charge" and line.is_settled else kind)
    return {
        "created_at": line.transfer.created_at,
        "kind_word": word,
        "task_id": line.client_id,
        "is_deleted": line.is_buried,
        "reference": line.transfer.reference,
        "sign": signs[line.signed_micros > 0] if line.signed_micros else "",
        "amount_micros": line.transfer.amount_micros,
        "balance_after_micros": line.balance_after_micros,
    }
