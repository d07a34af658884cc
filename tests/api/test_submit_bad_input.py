"""POST /api/videos with bad input: named, explained in both languages, and no row left."""

import json
from typing import Any

import pytest
from django.test import Client

from tests import makers
from tests.api.answers import (
    CHANGED_NOTHING,
    CHANGED_NOTHING_CHINESE,
    CHINESE,
    assert_problem,
    nothing_changes,
)

pytestmark = pytest.mark.django_db

ID = "a-client-id-1"
EMOJI = "\N{CAT FACE}"  # one code point, two UTF-16 units, four bytes


def body(**fields: Any) -> str:
    """A valid order with some fields changed, as JSON text; an Ellipsis leaves a field out."""
    order = {"id": ID, "model": "veo3.1", "prompt": "a cat", **fields}
    return json.dumps({name: value for name, value in order.items() if value is not ...})


def raw(member: str) -> str:
    """A valid order with a member written as given."""
    return body()[:-1] + f", {member}}}"


ID_LIMIT = "it must have 8 to 64 letters, digits, hyphens or underscores"
WHOLE = "it must be a whole number"
SECONDS = "it must be between 1 and 3,600"
PLAIN = "it must not contain control characters or broken Unicode"
JSON = "it must be a JSON object in UTF-8"
AMOUNT = "it must be an amount with at most six decimals, in quotes"
CHARACTERS = "it may have up to 4,000 characters"

# what is sent → the field named, the limit told
INVALID: dict[str, tuple[str | bytes, str, str]] = {
    "unknown field": (body(colour="red"), "colour", "there is no such field"),
    "misspelt field": (body(max_prize="1"), "max_prize", "there is no such field"),
    "empty field name": (body(**{"": 1}), "", "there is no such field"),
    "no id": (body(id=...), "id", "it is required"),
    "no model": (body(model=...), "model", "it is required"),
    "no prompt": (body(prompt=...), "prompt", "it is required"),
    "id of 7 characters": (body(id="a" * 7), "id", ID_LIMIT),
    "id of 65 characters": (body(id="a" * 65), "id", ID_LIMIT),
    "empty id": (body(id=""), "id", ID_LIMIT),
    "id with a space": (body(id="has a space"), "id", ID_LIMIT),
    "id with a slash": (body(id="a/b/c/d/e/f"), "id", ID_LIMIT),
    "id with a line end": (body(id="a-client-id-1\n"), "id", ID_LIMIT),
    "id with a NUL": (body(id="a-client-id-\x00"), "id", ID_LIMIT),
    "id with letters beyond ASCII": (body(id="é" * 8), "id", ID_LIMIT),
    "id with digits beyond ASCII": (body(id="١" * 12), "id", ID_LIMIT),
    "id that is nearly a URN": (body(id="urn:uuid:" + "-" * 36), "id", ID_LIMIT),
    "id that is a longer URN": (body(id="urn:uuid:" + "a" * 36), "id", ID_LIMIT),
    "id of a batch": (body(id="b_1234567890"), "id", "it must not begin with b_"),
    "id that is a number": (body(id=12345678), "id", "it must be text"),
    "id that is null": (body(id=None), "id", "it must be text"),
    "id that is a list": (body(id=[ID]), "id", "it must be text"),
    "model that is a number": (body(model=7), "model", "it must be text"),
    "model with a NUL": (body(model="veo\x00"), "model", PLAIN),
    "empty model": (body(model=""), "model", PLAIN),
    "model that is a page": (body(model="m" * 65), "model", PLAIN),
    "seconds of 0": (body(seconds=0), "seconds", SECONDS),
    "negative seconds": (body(seconds=-5), "seconds", SECONDS),
    "a billion seconds": (body(seconds=10**9), "seconds", SECONDS),
    "seconds beyond 64 bits": (body(seconds=10**30), "seconds", SECONDS),
    "seconds as 1e9": (raw('"seconds": 1e9'), "seconds", WHOLE),
    "seconds as 5.0": (raw('"seconds": 5.0'), "seconds", WHOLE),
    "seconds as text": (body(seconds="5"), "seconds", WHOLE),
    "seconds as true": (body(seconds=True), "seconds", WHOLE),
    "seconds as null": (body(seconds=None), "seconds", WHOLE),
    "seconds as a list": (body(seconds=[8]), "seconds", WHOLE),
    "seconds the model has not": (body(seconds=5), "seconds", "it must be one of 4, 6, 8"),
    "seconds as NaN": (raw('"seconds": NaN'), "request", JSON),
    "seconds as Infinity": (raw('"seconds": Infinity'), "request", JSON),
    "seconds as -Infinity": (raw('"seconds": -Infinity'), "request", JSON),
    "a number of 5,000 digits": (raw('"seconds": ' + "9" * 5000), "request", JSON),
    "resolution the model has not": (
        body(resolution="4k"),
        "resolution",
        "it must be one of 720p, 1080p",
    ),
    "resolution as a number": (body(resolution=720), "resolution", "it must be text"),
    "shape the model has not": (body(aspect_ratio="4:3"), "aspect_ratio", "it must be one of 16:9, 9:16"),
    "audio as text": (body(audio="yes"), "audio", "it must be true or false"),
    "audio as a number": (body(audio=1), "audio", "it must be true or false"),
    "audio as null": (body(audio=None), "audio", "it must be true or false"),
    "audio a model has not": (
        body(model="kling-2.5-turbo", audio=True),
        "audio",
        "this model does not offer it",
    ),
    "seed a model has not": (body(model="kling-2.5-turbo", seed=1), "seed", "this model does not offer it"),
    "negative seed": (body(seed=-1), "seed", "it must be between 0 and 2,147,483,647"),
    "seed of 2^31": (body(seed=2**31), "seed", "it must be between 0 and 2,147,483,647"),
    "seed as text": (body(seed="1"), "seed", WHOLE),
    "empty prompt": (body(prompt=""), "prompt", "it is required"),
    "blank prompt": (body(prompt=" \n\t"), "prompt", "it is required"),
    "prompt as a list": (body(prompt=["a cat"]), "prompt", "it must be text"),
    "prompt as null": (body(prompt=None), "prompt", "it must be text"),
    "C68: NUL in the prompt": (body(prompt="a\x00cat"), "prompt", PLAIN),
    "C68: U+0001 in the prompt": (body(prompt="a\x01cat"), "prompt", PLAIN),
    "C68: U+007F in the prompt": (body(prompt="a\x7fcat"), "prompt", PLAIN),
    "C68: a lone high surrogate": (body(prompt="a\ud800cat"), "prompt", PLAIN),
    "C68: a lone low surrogate": (body(prompt="a\udc00cat"), "prompt", PLAIN),
    "C68: surrogate at the end": (body(prompt="a cat\ud83d"), "prompt", PLAIN),
    "C70: prompt of 4,001 letters": (body(prompt="a" * 4001), "prompt", CHARACTERS),
    "C70: prompt of 4,001 emoji": (
        json.dumps({"id": ID, "model": "veo3.1", "prompt": EMOJI * 4001}, ensure_ascii=False),
        "prompt",
        CHARACTERS,
    ),
    "prompt beyond a smaller model": (
        body(model="kling-2.5-turbo", prompt="a" * 2501),
        "prompt",
        "it may have up to 2,500 characters",
    ),
    "max_price as a number": (body(max_price=4.16), "max_price", "it must be text"),
    "max_price as a whole number": (body(max_price=5), "max_price", "it must be text"),
    "max_price as null": (body(max_price=None), "max_price", "it must be text"),
    "empty max_price": (body(max_price=""), "max_price", AMOUNT),
    "max_price with seven places": (body(max_price="4.1600001"), "max_price", AMOUNT),
    "max_price with a comma": (body(max_price="4,16"), "max_price", AMOUNT),
    "max_price with a currency": (body(max_price="4.16 USDC"), "max_price", AMOUNT),
    "max_price with an exponent": (body(max_price="1e3"), "max_price", AMOUNT),
    "negative max_price": (body(max_price="-1"), "max_price", AMOUNT),
    "max_price as NaN": (body(max_price="NaN"), "max_price", AMOUNT),
    "max_price beyond 64 bits": (body(max_price="9" * 20), "max_price", AMOUNT),
    "max_price in other digits": (body(max_price="٤"), "max_price", AMOUNT),
    "image for a text model": (
        body(image_url="https://images.example/cat.png"),
        "image_url",
        "this model takes no image",
    ),
    "file for a text model": (
        body(image_file="0192e8a0-0000-7000-8000-000000000000"),
        "image_file",
        "this model takes no image",
    ),
    "file id that is none": (body(image_file="cat.png"), "image_file", "it must be the id of a file"),
    "two images": (
        body(image_url="https://images.example/cat.png", image_file="0192e8a0-0000-7000-8000-000000000000"),
        "image_url",
        "only one image may be given",
    ),
    "image over http": (
        body(image_url="http://images.example/cat.png"),
        "image_url",
        "it must be a public https address",
    ),
    "image in the address": (
        body(image_url="data:image/png;base64,AAAA"),
        "image_url",
        "it must be a public https address",
    ),
    "image at half an IPv6 address": (
        body(image_url="https://[::1/cat.png"),
        "image_url",
        "it must be a public https address",
    ),
    "image with a password": (
        body(image_url="https://me:secret@images.example/cat.png"),
        "image_url",
        "it must be a public https address",
    ),
    "repeated name": (raw('"prompt": "a dog"'), "prompt", "it may be given only once"),
    "repeated id": (raw('"id": "another-id-1"'), "id", "it may be given only once"),
    "array body": ("[1, 2]", "request", JSON),
    "text body": ('"a cat"', "request", JSON),
    "null body": ("null", "request", JSON),
    "broken JSON": (body()[:-2], "request", JSON),
    "two documents": (body() + body(), "request", JSON),
    "blank body": ("   ", "request", JSON),
    "single quotes": ("{'id': 'a-client-id-1'}", "request", JSON),
    "invalid UTF-8": (body().encode().replace(b"a cat", b"\xff\xfe"), "request", JSON),
    "UTF-16": (body().encode("utf-16"), "request", JSON),
    "byte order mark": (b"\xef\xbb\xbf" + body().encode(), "request", JSON),
    "nine levels": (raw('"seed": ' + "[" * 8 + "]" * 8), "request", "it may be up to 8 levels deep"),
    "30,000 levels": ("[" * 30_000, "request", "it may be up to 8 levels deep"),
}


def send(api: Client, content: str | bytes, **headers: str) -> Any:
    return api.post("/api/videos", content, content_type="application/json", headers=headers)


@pytest.mark.parametrize("name", INVALID)
def test_bad_input_is_named_and_leaves_no_row(name: str):
    content, field, limit = INVALID[name]
    owner = makers.make_owner()
    with nothing_changes():
        answer = send(owner.api, content)
        in_chinese = send(owner.api, content, **CHINESE)
    document = assert_problem(answer, 400, "invalid", field=field)
    assert f" is not valid: {limit}; {CHANGED_NOTHING}" in document["detail"]
    assert "charge" not in document  # the id was not looked at, so nothing can be said about its money
    text = assert_problem(in_chinese, 400, "invalid", field=field)["detail"]
    assert CHANGED_NOTHING_CHINESE in text
    assert CHANGED_NOTHING not in text
    assert limit not in text  # the limit is told in the reader's language too


@pytest.mark.parametrize("name", ["unknown field", "seconds of 0", "C68: NUL in the prompt", "no model"])
def test_bad_input_about_a_known_id_says_nothing_about_its_money_and_changes_nothing(name: str):
    owner = makers.make_owner()
    assert makers.post(owner, json.loads(body())).status_code == 201
    with nothing_changes():
        document = assert_problem(send(owner.api, INVALID[name][0]), 400, "invalid")
    assert "charge" not in document
    assert makers.get(owner, ID).json()["charge"]["state"] == "charged"


def test_an_unknown_model_is_refused_by_name():
    owner = makers.make_owner()
    with nothing_changes():
        document = assert_problem(
            send(owner.api, body(model="sora-9")), 400, "model_unavailable", field="model"
        )
        chinese = assert_problem(
            send(owner.api, body(model="sora-9"), **CHINESE), 400, "model_unavailable", field="model"
        )
    assert document["detail"] == "sora-9 cannot be ordered at the moment; nothing was charged."
    assert "sora-9" in chinese["detail"]
    assert "cannot" not in chinese["detail"]


@pytest.mark.parametrize("size", [64 * 1024 + 1, 100_000, 1024 * 1024])
def test_c70_a_body_over_64_kib_is_refused_with_its_size_and_the_limit(size: int):
    owner = makers.make_owner()
    content = body(prompt="a" * (size - len(body(prompt=""))))
    assert len(content) == size
    with nothing_changes():
        document = assert_problem(send(owner.api, content), 413, "too_large")
        chinese = assert_problem(send(owner.api, content, **CHINESE), 413, "too_large")
    assert "the limit is 64" in document["detail"]
    assert document["detail"].endswith(CHANGED_NOTHING)
    assert CHANGED_NOTHING_CHINESE in chinese["detail"]


def test_100000_levels_are_refused_for_their_size_without_being_read():
    owner = makers.make_owner()
    with nothing_changes():
        assert_problem(send(owner.api, "[" * 100_000), 413, "too_large")


def test_an_empty_body_lacks_its_first_field():
    owner = makers.make_owner()
    with nothing_changes():
        document = assert_problem(send(owner.api, ""), 400, "invalid")
    assert document["field"] in ("id", "request")


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml"],
)
def test_a_body_of_another_type_is_refused(content_type: str):
    owner = makers.make_owner()
    with nothing_changes():
        answer = owner.api.post("/api/videos", body(), content_type=content_type)
    document = assert_problem(answer, 415, "unsupported_media_type")
    assert document["detail"].endswith(CHANGED_NOTHING)


def test_a_charset_beside_the_type_is_accepted():
    owner = makers.make_owner()
    answer = owner.api.post("/api/videos", body(), content_type="application/json; charset=utf-8")
    assert answer.status_code == 201


@pytest.mark.parametrize(
    "prompt",
    [
        EMOJI * 4000,
        "a" * 4000,
        "line\nline\r\n\ttab",
        "  kept as it is  ",
        "‮right to left‏",
        "\ufffe\uffff non-characters",
        "e\u0301 is not é",
    ],
    ids=["4,000 emoji", "4,000 letters", "line ends", "blanks", "directions", "non-characters", "accents"],
)
def test_a_prompt_at_the_limit_or_odd_is_kept_letter_for_letter(prompt: str):
    owner = makers.make_owner()
    answer = send(owner.api, json.dumps({"id": ID, "model": "veo3.1", "prompt": prompt}, ensure_ascii=False))
    assert answer.status_code == 201, answer.content
    assert makers.get(owner, ID).json()["prompt"] == prompt


def test_a_surrogate_pair_is_one_character():
    owner = makers.make_owner()
    content = body(prompt="X").replace("X", r"\ud83d\ude3a" * 4000)
    assert len(content) < 64 * 1024
    assert send(owner.api, content).status_code == 201
    assert makers.get(owner, ID).json()["prompt"] == "\N{SMILING CAT FACE WITH OPEN MOUTH}" * 4000


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_other_methods_are_refused(method: str):
    owner = makers.make_owner()
    with nothing_changes():
        answer = getattr(owner.api, method)("/api/videos", body(), content_type="application/json")
    assert_problem(answer, 405, "method_not_allowed")
