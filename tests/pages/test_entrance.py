"""Signing up, in and out."""

from typing import Any

import pytest
from django.conf import settings as project
from django.test import Client

from accounts.models import User
from billing.models import Transfer
from tests import makers
from tests.makers import Owner
from tests.pages.conftest import sign_in
from tests.pages.reading import Page, get, press

LOGIN, SIGNUP, LOGOUT = "/accounts/login/", "/accounts/signup/", "/accounts/logout/"
PASSWORD = "correct horse battery"


def is_signed_in(client: Client) -> bool:
    return client.get("/account/").status_code == 200


def test_signing_up_opens_an_account_without_money(db: None) -> None:
    client = Client()
    form = get(client, SIGNUP).form(SIGNUP)

    answer = press(client, form, username="nadia", password1=PASSWORD, password2=PASSWORD)

    assert (answer.status_code, answer["Location"]) == (302, "/videos/")
    assert User.objects.get().username == "nadia"
    assert "0.00 USDC" in get(client, "/videos/").text
    assert Transfer.objects.count() == 0


def test_a_taken_name_and_a_weak_password_are_refused(db: None) -> None:
    makers.make_owner(name="nadia")
    client = Client()
    form = get(client, SIGNUP).form(SIGNUP)

    page = Page(press(client, form, username="nadia", password1="12345678", password2="12345678"))

    assert page.status == 200
    assert "A user with that username already exists." in page.text
    assert User.objects.count() == 1
    assert not is_signed_in(client)


def test_signing_in_leads_back_to_the_page_that_was_asked_for(db: None) -> None:
    owner = makers.make_owner(name="nadia", password=PASSWORD)
    client = Client()
    asked = client.get("/billing/")

    form = Page(client.get(asked["Location"])).form(LOGIN)
    answer = press(client, form, login="nadia", password=PASSWORD)

    assert (answer.status_code, answer["Location"]) == (302, "/billing/")
    assert is_signed_in(client)
    assert owner.balance_micros == 100_000_000


def test_signing_in_leads_to_no_foreign_site(db: None) -> None:
    makers.make_owner(name="nadia", password=PASSWORD)
    client = Client()

    form = get(client, f"{LOGIN}?next=https://elsewhere.example/").form(LOGIN)
    answer = press(client, form, login="nadia", password=PASSWORD)

    assert (answer.status_code, answer["Location"]) == (302, "/videos/")


@pytest.mark.parametrize(
    ("language", "sentence"),
    [("en", "The username and/or password you specified are not correct."), ("zh-hans", "密码")],
)
def test_a_wrong_password_signs_nobody_in(db: None, language: str, sentence: str) -> None:
    makers.make_owner(name="nadia", password=PASSWORD)
    client = Client()
    client.cookies["django_language"] = language

    page = Page(press(client, get(client, LOGIN).form(LOGIN), login="nadia", password="wrong"))

    assert page.status == 200
    assert sentence in page.text
    assert not is_signed_in(client)


def test_guessing_passwords_is_stopped_even_for_the_right_one(db: None) -> None:
    makers.make_owner(name="nadia", password=PASSWORD)
    client = Client()
    form = get(client, LOGIN).form(LOGIN)
    for number in range(5):
        assert press(client, form, login="nadia", password=f"guess {number}").status_code == 200

    page = Page(press(client, form, login="nadia", password=PASSWORD))

    assert "Too many failed login attempts. Try again later." in page.text
    assert not is_signed_in(client)


def test_too_many_sign_ins_from_one_address_are_answered_429_in_both_languages(
    db: None, settings: Any
) -> None:
    settings.ACCOUNT_RATE_LIMITS = {**project.ACCOUNT_RATE_LIMITS, "login": "3/m/ip"}
    makers.make_owner(name="nadia", password=PASSWORD)
    client = Client()
    form = get(client, LOGIN).form(LOGIN)
    for number in range(3):
        assert press(client, form, login=f"nobody {number}", password="guess").status_code == 200

    answer = press(client, form, login="nadia", password=PASSWORD)

    assert answer.status_code == 429
    assert "Too many attempts" in Page(answer).text and "操作过于频繁" in Page(answer).text
    assert answer["Cache-Control"] == "no-store"
    assert not is_signed_in(client)


def test_signing_out_asks_first_and_then_ends_the_session(client: Client, owner: Owner) -> None:
    running = makers.submit(owner, prompt="goes on")
    page = get(client, LOGOUT)
    assert "Running videos go on while you are signed out, and are not charged again." in page.text
    assert is_signed_in(client)

    answer = press(client, page.form(LOGOUT))

    assert answer.status_code == 302
    assert not is_signed_in(client)
    assert makers.task_of(owner, running).state == "submitting"


@pytest.mark.parametrize("path", [LOGIN, SIGNUP, "/accounts/password/reset/"])
def test_forms_of_the_entrance_are_labelled_in_chinese(db: None, path: str) -> None:
    client = Client()
    client.cookies["django_language"] = "zh-hans"

    text = get(client, path).text

    for english in ("Login", "Username", "Email", "E-mail", "Password", "Sign", "email"):
        assert english not in text


def test_a_person_can_keep_an_address_for_a_new_password(client: Client, owner: Owner) -> None:
    page = get(client, "/accounts/email/")
    assert "No address yet." in page.text
    form = next(form for form in page.forms if "action_add" in form.buttons)

    answer = press(client, form, "action_add", email="nadia@example.org")

    assert answer.status_code == 302
    assert "nadia@example.org not confirmed Make it the main one" in get(client, "/accounts/email/").text


def test_the_password_can_be_changed_and_the_old_one_ends(db: None) -> None:
    owner = makers.make_owner(name="nadia", password=PASSWORD)
    client = sign_in(owner)
    path = "/accounts/password/change/"
    form = get(client, path).form(path)
    new = "a longer walk home"

    assert press(client, form, oldpassword=PASSWORD, password1=new, password2=new).status_code == 302

    fresh = Client()
    login = get(fresh, LOGIN).form(LOGIN)
    assert press(fresh, login, login="nadia", password=PASSWORD).status_code == 200
    assert press(fresh, login, login="nadia", password=new).status_code == 302
