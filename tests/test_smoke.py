import pytest
from tests import makers

pytestmark = pytest.mark.django_db


def test_a_paid_video_is_made_and_charged_once(simulator):
    owner = makers.make_owner()
    client_id = makers.submit(owner)
    makers.work()
    task = makers.represent(owner, client_id)
    assert (task["state"], task["charge"]["state"]) == ("completed", "settled")
    assert owner.balance_micros == 100_000_000 - makers.PRICE_MICROS
    assert simulator.count() == 1

@pytest.mark.django_db(transaction=True)
def test_a_paid_video_is_made_and_charged_once2(simulator):
    owner = makers.make_owner()
    r = makers.post(owner, makers.order())
    assert r.status_code == 201, r.content
    print(r.json())
    makers.work()
    r = makers.get(owner, r.json()["id"])
    assert r.json()["state"] == "completed"
    c = owner.api.get(r.json()["result"]["url"], headers={"range": "bytes=0-9"})
    assert c.status_code == 206 and c["content-length"] == "10" and len(b"".join(c.streaming_content)) == 10
    for u in ("/api/account", "/api/account/transfers", "/api/models", "/api/files", "/api/videos", "/api/schema", "/readyz"):
        x = owner.api.get(u); assert x.status_code == 200, (u, x.content)
