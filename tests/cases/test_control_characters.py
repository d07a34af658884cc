"""C68: NUL and its kin, from clients and from the provider."""

import json
from typing import Any

import pytest

from tests import makers
from tests.cases.evidence import changed_tables, kinds_of, rows, state_of
from tests.makers import Owner

pytestmark = pytest.mark.django_db
BAD = {
    "NUL": "\\u0000",
    "U+0001": "\\u0001",
    "escape": "\\u001b[31m",
    "lone high": "\\ud800",
    "lone low": "\\udc00x",
}
BAD |= {"delete": "\\u007f", "C1": "\\u0085"}


def post_raw(owner: Owner, body: str) -> Any:
    return owner.api.post("/api/videos", body, content_type="application/json")


@pytest.mark.parametrize(
    "field", ["prompt", "id", "model", "resolution", "aspect_ratio", "image_url", "max_price"]
)
def test_a_request_with_control_characters_or_half_a_character_is_refused_and_nothing_is_changed(
    owner: Owner, simulator: Any, field: str
) -> None:
    before = rows()
    document = {**makers.order(), field: "MARK"}
    for name, escaped in BAD.items():
        answer = post_raw(owner, json.dumps(document).replace("MARK", f"a{escaped}b"))
        told = (answer.status_code, answer.json()["code"], answer.json()["field"])
        assert told == (400, "invalid", field), name
    assert changed_tables(before) == []
    assert simulator.posts() == 0


def test_a_field_s_name_with_such_characters_is_refused_too(owner: Owner, simulator: Any) -> None:
    before = rows()
    for name, escaped in BAD.items():
        body = json.dumps({**makers.order(), "MARK": 1}).replace("MARK", f"a{escaped}b")
        answer = post_raw(owner, body)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid"), name
    assert changed_tables(before) == []


def test_line_breaks_tabs_and_every_whole_character_are_kept_as_they_are(
    owner: Owner, simulator: Any
) -> None:
    prompt = "a cat\n\ton a roof\r\n猫 👩‍🚀 e\u0301 \u202e right to left \ufffd \U0010fffd"
    client_id = makers.submit(owner, prompt=prompt)
    makers.work()
    assert makers.get(owner, client_id).json()["prompt"] == prompt
    assert simulator.jobs()[0]["input"]["prompt"] == prompt


@pytest.mark.parametrize("escaped", ["\\u0000", "\\u0001", "\\u001b", "\\ud800", "\\u202e"])
@pytest.mark.parametrize("how", ["fail", "refuse=422 detail", "refused_output"])
def test_such_characters_in_the_provider_s_words_break_no_poll_and_are_not_kept(
    owner: Owner, simulator: Any, how: str, escaped: str
) -> None:
    client_id = makers.submit(owner, prompt=f'a cat [sim: {how}="the{escaped} model{escaped} broke"]')
    makers.work()
    assert state_of(owner, client_id)[:2] == ("failed", "refunded")
    assert kinds_of(owner, client_id) == ["charge", "refund"]
    task = makers.get(owner, client_id).json()
    assert task["error"]["detail"] == "the model broke"


@pytest.mark.parametrize("escaped", ["\\u0000", "\\ud800"])
def test_such_characters_in_a_status_word_keep_the_task_running(
    owner: Owner, simulator: Any, escaped: str
) -> None:
    client_id = makers.submit(owner, prompt=f'a cat [sim: status_word="DONE{escaped}"]')
    makers.work()
    assert state_of(owner, client_id)[:2] == ("processing", "charged")


@pytest.mark.parametrize(
    "address",
    [
        "/api/videos/%00aaaaaaaa",
        "/api/videos?q=%00",
        "/api/videos?ids=%00,aaaaaaaa%00",
        "/api/videos?model=%00",
        "/api/videos?cursor=%00",
        "/api/videos?q=%ed%a0%80",
        "/api/files?cursor=%00",
        "/api/account/transfers?cursor=%00",
    ],
)
def test_such_characters_in_an_address_are_an_answer_and_not_a_fault(
    owner: Owner, simulator: Any, address: str
) -> None:
    assert owner.api.get(address).status_code in (200, 400, 404)
