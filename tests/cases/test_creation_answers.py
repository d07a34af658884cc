"""C20: creation is not always 200, and the id not always where it was."""

from typing import Any

import pytest

from tests import makers
from tests.cases.evidence import kinds_of, state_of
from tests.makers import Owner

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "fault",
    ["code=200", "code=201", "code=202", "shape=nested", "code=201; shape=nested", "code=202; shape=nested"],
)
def test_every_form_of_a_creation_with_an_id_is_accepted(owner: Owner, simulator: Any, fault: str) -> None:
    client_id = makers.submit(owner, prompt=f"a cat [sim: {fault}; webhook_none; lookup=never]")
    makers.work_once()
    (attempt,) = makers.attempts_of(owner, client_id)
    assert (attempt.outcome, attempt.upstream_id) == ("accepted", simulator.jobs()[0]["request_id"])
    makers.work()
    assert state_of(owner, client_id) == ("completed", "settled", "completed")
    assert kinds_of(owner, client_id) == ["charge", "settle"]
    assert (simulator.count(), simulator.posts()) == (1, 1)


@pytest.mark.parametrize(
    "fault", ["shape=array", "shape=no_id", "code=201; shape=no_id", "code=202; body=empty"]
)
def test_a_creation_without_a_readable_id_is_unclear_and_not_sent_again(
    owner: Owner, simulator: Any, fault: str
) -> None:
    client_id = makers.submit(owner, prompt=f"a cat [sim: {fault}; webhook_none; lookup=never]")
    makers.work()
    assert state_of(owner, client_id) == ("unknown", "charged", "unknown")
    assert (simulator.count(), simulator.posts()) == (1, 1)
