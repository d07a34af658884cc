"""The HTTP API of an owner's money."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.authentication import owner_of
from billing import queries
from billing.queries import StatementLine
from core import cursors
from core.money import to_amount

NO_STORE = {"Cache-Control": "no-store"}


class AccountShape(serializers.Serializer):
    balance = serializers.CharField(help_text="available; excludes what is held")
    held = serializers.CharField()
    currency = serializers.CharField()


class TransferShape(serializers.Serializer):
    id = serializers.UUIDField()
    kind = serializers.CharField()
    amount = serializers.CharField()
    direction = serializers.ChoiceField(choices=["in", "out", "none"])
    task = serializers.CharField(allow_null=True)
    reference = serializers.CharField()
    balance_after = serializers.CharField()
    created_at = serializers.DateTimeField()


class TransferPage(serializers.Serializer):
    results = TransferShape(many=True)
    next_cursor = serializers.CharField(allow_null=True)


class AccountDetail(APIView):
    @extend_schema(operation_id="get_account", responses={200: AccountShape})
    def get(self, request: Request) -> Response:
        """Balance and what is held for running videos."""
        balance = queries.balance_of(owner_of(request).pk)
        document = {
            "balance": to_amount(balance.available_micros),
            "held": to_amount(balance.held_micros),
            "currency": settings.BILLING_CURRENCY,
        }
        return Response(document, headers=NO_STORE)


class TransferList(APIView):
    @extend_schema(
        operation_id="list_transfers",
        parameters=[OpenApiParameter("cursor", str), OpenApiParameter("limit", int)],
        responses={200: TransferPage},
    )
    def get(self, request: Request) -> Response:
        """The statement: newest first, each with the balance after it."""
        limit = cursors.read_limit(request.query_params.get("limit"))
        before = cursors.decode(request.query_params.get("cursor", ""))
        lines = queries.statement(owner_id=owner_of(request).pk, limit=limit + 1, before=before)
        shown = lines[:limit]
        last = shown[-1].transfer if len(lines) > limit else None
        document = {
            "results": [represent_line(line) for line in shown],
            "next_cursor": cursors.encode(last.created_at, last.pk) if last else None,
        }
        return Response(document, headers=NO_STORE)


def represent_line(line: StatementLine) -> dict[str, Any]:
    transfer = line.transfer
    direction = "none" if line.signed_micros == 0 else "in" if line.signed_micros > 0 else "out"
    return {
        "id": str(transfer.pk),
        "kind": transfer.kind,
        "amount": to_amount(transfer.amount_micros),
        "direction": direction,
        "task": line.client_id,
        "reference": transfer.reference,
        "balance_after": to_amount(line.balance_after_micros),
        "created_at": transfer.created_at.isoformat().replace("+00:00", "Z"),
    }
