"""The account page: API tokens, shown once and revoked at once, and the language a person chose."""

import re

import pytest
from django.test import Client

from accounts.models import ApiToken
from tests import makers
from tests.makers import Owner
from tests.pages.conftest import sign_in
from tests.pages.reading import Page, get, press

SECRET = re.compile(r"or_[A-Za-z0-9_-]{43}")


def api_status(key: str) -> int:
    return Client(headers={"authorization": f"Token {key}"}).get("/api/account").status_code


def make_token(client: Client, name: str) -> tuple[Page, str]:
    page = Page(press(client, get(client, "/account/").form("/account/tokens"), name=name))
    found = SECRET.search(page.source)
    return page, found.group() if found else ""


def test_a_new_token_is_shown_once_works_and_is_kept_as_a_hash(client: Client) -> None:
    page, key = make_token(client, "nightly renders")

    assert page.status == 201
    assert "Copy it now; it is shown only once." in page.text
    assert api_status(key) == 200
    later = get(client, "/account/")
    assert "nightly renders" in later.text
    assert SECRET.search(later.source) is None
    assert not [token for token in ApiToken.objects.all() if key in str(token.__dict__)]


def test_a_revoked_token_is_refused_from_then_on(client: Client) -> None:
    _, key = make_token(client, "to be revoked")
    token = ApiToken.objects.get(name="to be revoked")
    assert api_status(key) == 200

    answer = press(client, get(client, "/account/").form(f"/account/tokens/{token.pk}/revoke"))

    assert (answer.status_code, answer["Location"]) == (302, "/account/")
    assert api_status(key) == 401
    assert "to be revoked" not in get(client, "/account/").text


def test_a_strangers_token_is_neither_listed_nor_revoked(client: Client) -> None:
    other = makers.make_owner()

    client.post(f"/account/tokens/{other.token.pk}/revoke")

    assert api_status(other.key) == 200
    assert get(client, "/account/").source.count("/revoke") == 1  # our own of the maker


@pytest.mark.parametrize("name", ["", "   ", "x" * 65, "a\x00b", "two\nlines"])
def test_a_bad_token_name_is_refused_and_no_token_is_made(client: Client, name: str) -> None:
    before = ApiToken.objects.count()

    page, key = make_token(client, name)

    assert (page.status, key) == (400, "")
    assert "A name of 1 to 64 characters is needed." in page.text
    assert ApiToken.objects.count() == before


def test_a_chosen_language_is_remembered_on_other_devices(client: Client, owner: Owner) -> None:
    answer = press(client, get(client, "/account/").form("/i18n/setlang/"), language="zh-hans")

    assert (answer.status_code, answer["Location"]) == (302, "/account/")
    assert get(client, "/account/").language == "zh-Hans"
    owner.user.refresh_from_db()
    assert owner.user.language == "zh-hans"
    assert get(sign_in(owner), "/videos/", accept_language="en").language == "zh-Hans"


def test_without_a_choice_the_browsers_language_counts(client: Client) -> None:
    assert get(client, "/account/", accept_language="zh-CN,zh;q=0.9").language == "zh-Hans"
    assert get(client, "/account/", accept_language="fr").language == "en"


@pytest.mark.parametrize("code", ["xx", "zh-hans;drop", ""])
def test_a_language_that_does_not_exist_is_not_remembered(client: Client, owner: Owner, code: str) -> None:
    press(client, get(client, "/account/").form("/i18n/setlang/"), language=code)

    owner.user.refresh_from_db()
    assert owner.user.language == ""


def test_the_language_switch_leads_to_no_foreign_site(client: Client) -> None:
    form = get(client, "/account/").form("/i18n/setlang/")

    answer = press(client, form, language="en", next="https://elsewhere.example/")

    assert "elsewhere" not in answer["Location"]
