"""What every page has: a content policy, no foreign address, no cached state, proof of origin, errors."""

import json
import re
from typing import Any

import pytest
from django.test import Client, RequestFactory
from django.urls import get_resolver

from accounts.models import ApiToken
from tests import makers
from tests.makers import Owner
from tests.pages.reading import Page, get, press
from videos.models import VideoTask

OPEN = ["/accounts/login/", "/accounts/signup/", "/accounts/password/reset/", "/api/docs", "/nowhere/"]
STATE = ["/videos/", "/billing/", "/account/", "/videos/{id}/"]
POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "media-src 'self'",
    "connect-src 'self'",
    "font-src 'self'",
    "manifest-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
}


@pytest.mark.parametrize("path", [*OPEN, *STATE])
def test_every_page_has_the_whole_content_policy_and_names_no_foreign_address(
    client: Client, owner: Owner, path: str
) -> None:
    address = path.format(id=makers.submit(owner, prompt="a cat"))

    answer = client.get(address)

    assert set(answer["Content-Security-Policy"].split("; ")) == POLICY
    assert (answer["X-Frame-Options"], answer["X-Content-Type-Options"]) == ("DENY", "nosniff")
    page = Page(answer)
    assert [link for link in page.links if re.match(r"(https?:)?//", link)] == []
    assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)|<style|\sstyle=", page.source)


@pytest.mark.parametrize("path", STATE)
def test_pages_that_show_state_are_never_kept_by_a_cache(client: Client, owner: Owner, path: str) -> None:
    answer = client.get(path.format(id=makers.submit(owner, prompt="a cat")))

    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]


def test_a_refused_order_and_a_gone_video_are_not_kept_either(client: Client, owner: Owner) -> None:
    form = get(client, "/videos/").form("/videos/")

    refused = press(client, form, "action", prompt="")

    assert refused.status_code == 400
    assert "no-store" in refused["Cache-Control"]


@pytest.mark.parametrize(
    "path", ["/videos/", "/videos/{id}/cancel", "/videos/{id}/delete", "/account/tokens", "/i18n/setlang/"]
)
def test_a_post_without_proof_of_origin_changes_nothing(owner: Owner, path: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner.user, backend="django.contrib.auth.backends.ModelBackend")
    client_id = makers.submit(owner, prompt="a cat")
    tokens, balance = ApiToken.objects.count(), owner.balance_micros
    sent = {"prompt": "another", "name": "forged", "confirmed": "yes", "language": "zh-hans"}

    answer = client.post(path.format(id=client_id), sent)

    assert answer.status_code == 403
    page = Page(answer)
    assert "It was not taken, so nothing was charged by it" in page.text and "表单已过期" in page.text
    assert (VideoTask.objects.count(), ApiToken.objects.count()) == (1, tokens)
    assert (owner.balance_micros, makers.task_of(owner, client_id).state) == (balance, "submitting")
    owner.user.refresh_from_db()
    assert owner.user.language == ""


def test_an_unknown_page_says_in_both_languages_that_nothing_is_charged(client: Client) -> None:
    client.cookies["oncereel_theme"] = "dark"

    answer = client.get("/nowhere/", headers={"x-request-id": "request-12345"})

    page = Page(answer)
    assert (page.status, answer["Cache-Control"]) == (404, "no-store")
    assert "There is no page here" in page.text and "找不到此页面" in page.text
    assert "request-12345" in page.text
    assert 'data-theme="dark"' in page.source


def test_an_unknown_address_of_the_api_is_a_problem_document(client: Client) -> None:
    answer = client.get("/api/nowhere")

    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
    assert answer.json()["code"] == "not_found"


def test_an_error_of_the_api_is_a_problem_document_and_needs_no_database() -> None:
    request = RequestFactory().post("/api/videos")
    request.META["oncereel.request_id"] = "request-67890"

    answer = get_resolver().resolve_error_handler(500)(request)

    assert (answer.status_code, answer["Content-Type"]) == (500, "application/problem+json")
    document = json.loads(answer.content)
    assert (document["code"], document["request_id"]) == ("internal_error", "request-67890")
    assert "you will not be charged twice" in document["detail"]


@pytest.mark.parametrize(
    ("status", "sentence"),
    [(500, "Something broke on our side"), (403, "This is not open"), (400, "was not understood")],
)
def test_error_pages_need_no_database(status: int, sentence: str) -> None:
    request = RequestFactory().get("/videos/")
    request.META["oncereel.request_id"] = "request-67890"
    handler: Any = get_resolver().resolve_error_handler(status)

    answer = handler(request) if status == 500 else handler(request, Exception())

    page = Page(answer)
    assert (page.status, answer["Cache-Control"]) == (status, "no-store")
    assert sentence in page.text and "request-67890" in page.text
    assert "nothing is charged by this error" in page.text


def test_the_sign_of_the_site_is_found_where_browsers_look(db: None) -> None:
    answer = Client().get("/favicon.ico")

    assert (answer.status_code, answer["Location"]) == (302, "/static/icon.svg")
    icon: Any = Client().get("/static/icon.svg")
    assert b"<svg" in b"".join(icon.streaming_content)


def test_pages_refuse_other_methods(client: Client) -> None:
    assert client.put("/videos/").status_code == 405
    assert client.post("/billing/").status_code == 405
    assert client.get("/account/tokens").status_code == 405


def test_a_page_and_the_answers_of_the_api_name_the_same_version(client: Client) -> None:
    found = re.search(
        r'<meta name="oncereel-version" content="([0-9a-f]{12})">', get(client, "/videos/").source
    )

    assert found is not None
    assert client.get("/api/models")["X-Oncereel-Version"] == found.group(1)
    assert client.get("/api/nowhere")["X-Oncereel-Version"] == found.group(1)
    assert "X-Oncereel-Version" not in client.get("/videos/").headers
