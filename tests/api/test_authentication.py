"""Who may ask: tokens, sessions, and what a request without either is told."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts import operations as accounts
from accounts.models import ApiToken, User
from accounts.queries import digest_of_key, token_of_key
from tests import makers
from tests.api.answers import CHINESE, assert_problem, nothing_changes
from tests.makers import Owner
from videos.models import VideoTask

pytestmark = pytest.mark.django_db

GUARDED = [
    ("get", "/api/videos"),
    ("post", "/api/videos"),
    ("get", "/api/videos/a-client-id"),
    ("delete", "/api/videos/a-client-id"),
    ("post", "/api/videos/a-client-id/abandon"),
    ("post", "/api/videos/a-client-id/cancel"),
    ("get", "/api/models"),
    ("get", "/api/account"),
    ("get", "/api/account/transfers"),
    ("get", "/api/files"),
    ("delete", "/api/files/0192e8a0-0000-7000-8000-000000000000"),
    ("get", "/api/files/0192e8a0-0000-7000-8000-000000000000/content"),
]
BAD_HEADERS = {
    "a wrong token": "Token or_wrong",
    "an empty token": "Token ",
    "no token at all": "Token",
    "two tokens": "Token a b",
    "Latin-1": "Token caf\xe9",
    "UTF-8 read as Latin-1": "Token " + "钥匙".encode().decode("latin-1"),
    "NUL": "Token or_\x00",
    "a control character": "Token or_\x7f",
    "a page": "Token " + "a" * 100_000,
}


@pytest.mark.parametrize(("method", "address"), GUARDED)
def test_nothing_is_told_or_done_without_a_token(method: str, address: str):
    with nothing_changes():
        answer = getattr(Client(), method)(address, content_type="application/json")
    document = assert_problem(answer, 401, "not_authenticated")
    assert answer["WWW-Authenticate"] == "Token"
    assert document["detail"] == "Sign in, or send a valid token; this request changed nothing."


@pytest.mark.parametrize("name", BAD_HEADERS)
def test_a_token_that_is_nobodys_is_401_whatever_it_is_made_of(name: str):
    with nothing_changes():
        answer = Client().get("/api/account", headers={"authorization": BAD_HEADERS[name]})
    assert_problem(answer, 401, "not_authenticated")


def test_a_bad_token_is_told_in_the_readers_language():
    answer = Client().get("/api/account", headers={"authorization": "Token x", **CHINESE})
    assert "Sign in" not in assert_problem(answer, 401, "not_authenticated")["detail"]


def test_other_schemes_are_no_token(owner: Owner):
    for header in (f"Bearer {owner.key}", f"Basic {owner.key}", owner.key, f"Tokens {owner.key}"):
        answer = Client().get("/api/account", headers={"authorization": header})
        assert_problem(answer, 401, "not_authenticated")


@pytest.mark.parametrize("keyword", ["Token", "token", "TOKEN"])
def test_the_scheme_is_read_in_any_case(owner: Owner, keyword: str):
    answer = Client().get("/api/account", headers={"authorization": f"{keyword} {owner.key}"})
    assert answer.status_code == 200


def test_the_key_itself_is_not_in_the_database(owner: Owner):
    token = ApiToken.objects.get()
    assert token.digest == digest_of_key(owner.key)
    assert len(token.digest) == 64
    assert owner.key not in str(ApiToken.objects.values().get())


def test_a_revoked_token_is_401_at_once(owner: Owner):
    assert owner.api.get("/api/account").status_code == 200
    now = timezone.now()
    assert accounts.revoke_token(user=owner.user, token_id=str(owner.token.pk), now=now) is True
    order = makers.order()
    with nothing_changes():
        assert_problem(makers.post(owner, order), 401, "not_authenticated")
    assert not VideoTask.objects.exists()
    assert accounts.revoke_token(user=owner.user, token_id=str(ApiToken.objects.get().pk), now=now) is False


def test_nobody_revokes_the_token_of_another(owner: Owner):
    other = makers.make_owner()
    assert accounts.revoke_token(user=other.user, token_id=str(owner.token.pk), now=timezone.now()) is False
    assert owner.api.get("/api/account").status_code == 200


def test_the_token_of_an_inactive_person_is_401(owner: Owner):
    User.objects.filter(pk=owner.id).update(is_active=False)
    with nothing_changes():
        assert_problem(makers.post(owner, makers.order()), 401, "not_authenticated")


def test_a_token_is_found_by_one_query_on_an_index(owner: Owner, django_assert_num_queries: Any):
    with django_assert_num_queries(1):
        token = token_of_key(owner.key)
        assert token is not None
        assert token.user.username == owner.user.username


@pytest.mark.postgresql
def test_postgresql_uses_the_index_of_the_digest(owner: Owner):
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    plan = ApiToken.objects.filter(digest=digest_of_key(owner.key), revoked_at__isnull=True).explain()
    assert "Index Scan using accounts_token_digest_is_unique" in plan


def test_the_last_use_is_written_once_a_minute(owner: Owner, django_assert_num_queries: Any):
    owner.api.get("/api/models")
    first = owner.token.last_used_at
    assert first is not None
    with django_assert_num_queries(2):  # the token and the prices, and no write
        owner.api.get("/api/models")
    assert owner.token.last_used_at == first
    ApiToken.objects.update(last_used_at=first - timedelta(seconds=61))
    with django_assert_num_queries(3):
        owner.api.get("/api/models")
    used = owner.token.last_used_at
    assert used is not None
    assert used >= first


def signed_in(owner: Owner) -> Client:
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner.user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_a_session_may_read(owner: Owner):
    client_id = makers.submit(owner)
    answer = signed_in(owner).get(f"/api/videos/{client_id}")
    assert (answer.status_code, answer.json()["id"]) == (200, client_id)


def test_a_post_with_a_session_and_without_its_csrf_token_changes_nothing(owner: Owner):
    client = signed_in(owner)
    order = makers.order()
    with nothing_changes():
        for headers in ({}, {"x-csrftoken": "a" * 32}, {"authorization": "Basic x"}):
            answer = client.post("/api/videos", order, content_type="application/json", headers=headers)
            assert_problem(answer, 403, "permission_denied")
    assert makers.get(owner, order["id"]).status_code == 404


def test_a_post_with_a_session_and_its_csrf_token_orders(owner: Owner):
    client = signed_in(owner)
    client.cookies["csrftoken"] = "a" * 32
    answer = client.post(
        "/api/videos", makers.order(), content_type="application/json", headers={"x-csrftoken": "a" * 32}
    )
    assert answer.status_code == 201
    assert owner.balance_micros == 95_840_000


def test_a_token_needs_no_csrf_token_even_beside_a_session(owner: Owner):
    answer = signed_in(owner).post(
        "/api/videos",
        makers.order(),
        content_type="application/json",
        headers={"authorization": f"Token {owner.key}"},
    )
    assert answer.status_code == 201


def test_the_token_counts_when_a_session_of_another_person_comes_along(owner: Owner):
    other = makers.make_owner()
    client_id = makers.submit(other)
    answer = signed_in(owner).get(f"/api/videos/{client_id}", headers={"authorization": f"Token {other.key}"})
    assert answer.status_code == 200
