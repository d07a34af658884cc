"""C02, C09: our own answer to the client is lost, and the client asks again, or looks first."""

import contextlib
import json
import socket
from typing import Any

import pytest
from django.utils import timezone

from billing import operations as billing
from tests import makers
from tests.cases.evidence import changed_tables, kinds_of, rows, wait_for
from tests.makers import PRICE_MICROS, Owner
from tests.product_process import ProductProcess


@pytest.mark.django_db
def test_five_repeats_of_a_request_whose_answer_was_not_read_are_one_task_and_one_charge(
    owner: Owner, simulator: Any
) -> None:
    document = makers.order()
    makers.post(owner, document)  # this answer is lost
    before = rows()
    answers = [makers.post(owner, document) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200] * 5
    assert {answer["Idempotent-Replayed"] for answer in answers} == {"true"}
    assert {answer.json()["id"] for answer in answers} == {document["id"]}
    assert {answer.json()["charge"]["amount"] for answer in answers} == {"4.160000"}
    assert changed_tables(before) == []
    assert kinds_of(owner, document["id"]) == ["charge"]
    makers.work()
    assert (simulator.count(), owner.balance_micros) == (1, 100_000_000 - PRICE_MICROS)


@pytest.mark.django_db
def test_a_repeat_after_the_price_was_raised_or_the_model_withdrawn_shows_the_original_price(
    owner: Owner, simulator: Any
) -> None:
    document = makers.order(max_price="4.16")
    makers.post(owner, document)
    billing.set_price(
        model=makers.MODEL,
        resolution="720p",
        audio=True,
        unit="second",
        provider_micros=900_000,
        markup="1.3",
        now=timezone.now(),
    )
    assert makers.post(owner, document).json()["charge"]["amount"] == "4.160000"
    billing.withdraw_prices(model=makers.MODEL, now=timezone.now())
    answer = makers.post(owner, document)
    assert (answer.status_code, answer.json()["charge"]["amount"]) == (200, "4.160000")
    assert kinds_of(owner, document["id"]) == ["charge"]


@pytest.mark.django_db
def test_a_client_that_looks_before_it_repeats_finds_its_request_at_once(
    owner: Owner, simulator: Any
) -> None:
    """C09."""
    older = makers.submit(owner, prompt="an older one")
    document = makers.order()
    makers.post(owner, document)  # this answer is lost
    for address in (
        "/api/videos",
        "/api/videos?state=running",
        "/api/videos?q=cat+on",
        "/api/videos?limit=1",
    ):
        listed = owner.api.get(address).json()["results"]
        assert listed[0]["id"] == document["id"], address
        assert listed[0]["charge"] == {
            "state": "charged",
            "amount": "4.160000",
            "refunded": "0.000000",
            "currency": "USDC",
        }
    by_ids = owner.api.get(f"/api/videos?ids={document['id']},{older}").json()["results"]
    assert [entry["id"] for entry in by_ids] == [document["id"], older]
    held = owner.api.get("/api/account").json()
    assert (held["balance"], held["held"]) == ("91.680000", "8.320000")
    newest = owner.api.get("/api/account/transfers").json()["results"][0]
    assert (newest["task"], newest["kind"], newest["amount"]) == (document["id"], "charge", "4.160000")


def test_after_the_connection_was_cut_and_every_process_killed_the_same_request_is_still_one_task(
    product: ProductProcess,
) -> None:
    """C02 with real processes: the client hangs up before the answer; then the power fails."""
    assert product.simulator is not None
    document = makers.order(prompt="a cat through a power cut", seconds=4)
    charged_before = product.api("GET", "/api/account").json["balance"]
    jobs_before = product.simulator.count()
    _post_and_hang_up(product, document)
    wait_for(lambda: product.api("GET", f"/api/videos/{document['id']}").status == 200)
    for name in ("web", "worker", "beat"):
        product.kill(name)
    product.start_missing()
    for turn in range(5):
        reply = product.api("POST", "/api/videos", body=document)
        assert (reply.status, reply.headers["Idempotent-Replayed"]) == (200, "true"), turn
        assert (reply.json["id"], reply.json["charge"]["amount"]) == (document["id"], "2.080000")
    # The kill may have hit the sender between its committed attempt and the answer; both ends are right.
    ended = product.wait_until(document["id"], "completed", "unknown")
    assert ended["charge"]["state"] in ("settled", "charged")
    assert product.simulator.count() - jobs_before <= 1
    after = product.api("GET", "/api/account").json["balance"]
    assert _micros(charged_before) - _micros(after) == 2_080_000
    lines = product.api("GET", "/api/account/transfers").json["results"]
    charges = [line for line in lines if line["task"] == document["id"] and line["kind"] == "charge"]
    assert [line["amount"] for line in charges] == ["2.080000"]


def _post_and_hang_up(product: ProductProcess, document: dict[str, Any]) -> None:
    body = json.dumps(document).encode()
    head = (
        f"POST /api/videos HTTP/1.1\r\nHost: 127.0.0.1:{product.port}\r\n"
        f"Authorization: Token {product.token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with contextlib.closing(socket.create_connection(("127.0.0.1", product.port), timeout=5)) as connection:
        connection.sendall(head.encode() + body)
        connection.shutdown(socket.SHUT_WR)


def _micros(amount: str) -> int:
    whole, _, part = amount.partition(".")
    return int(whole) * 1_000_000 + int(part)
