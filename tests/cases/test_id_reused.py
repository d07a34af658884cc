"""C04: the same id with another body."""

from typing import Any

import pytest

from tests import makers
from tests.cases.evidence import changed_tables, rows
from tests.makers import Owner

pytestmark = pytest.mark.django_db
OTHER_BODIES = [
    {"prompt": "a dog on a roof"},
    {"prompt": "a cat on a roof "},
    {"seconds": 4},
    {"seconds": 8},  # the default, said aloud: the fields as sent are compared, before any default
    {"model": "veo3.1-fast"},
    {"model": "no-such-model"},
    {"resolution": "1080p"},
    {"aspect_ratio": "9:16"},
    {"audio": False},
    {"seed": 1},
]


@pytest.mark.parametrize("is_done", [False, True], ids=["running", "completed"])
def test_the_same_id_with_another_body_is_refused_and_nothing_is_changed(
    owner: Owner, simulator: Any, is_done: bool
) -> None:
    document = makers.order()
    makers.post(owner, document)
    if is_done:
        makers.work()
    task = makers.get(owner, document["id"]).json()
    before = rows()
    for other in OTHER_BODIES:
        answer = makers.post(owner, {**document, **other})
        assert (answer.status_code, answer.json()["code"]) == (422, "id_reused"), other
    assert changed_tables(before) == []
    assert makers.get(owner, document["id"]).json() == task
    makers.work()
    assert simulator.count() == 1
    assert simulator.jobs()[0]["input"]["prompt"] == "a cat on a roof"


def test_another_order_of_names_and_another_spelling_of_the_id_are_the_same_request(
    owner: Owner, simulator: Any
) -> None:
    document = makers.order(seconds=4, audio=True)
    makers.post(owner, document)
    before = rows()
    spelled = {**dict(reversed(document.items())), "id": document["id"].upper().replace("-", "")}
    answer = makers.post(owner, spelled)
    assert (answer.status_code, answer.json()["id"]) == (200, document["id"])
    assert changed_tables(before) == []
