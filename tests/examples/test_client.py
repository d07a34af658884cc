"""The example client against the real product: it pays once, whatever is lost or killed."""

import hashlib
import json
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from examples.client import make_video, read_items
from tests.examples.lossy_proxy import Fate, LossyProxy, Request
from tests.product_process import ROOT, ProductProcess

PRICE = Decimal("4.16")  # veo3.1, 8 s, 720p, with sound
PROMPTS = {
    "cat-1": "a cat on a roof",
    "cat-2": "a cat on a roof",  # equal prompts are two orders
    "zh-1": "在静止的画面中，一个停车标志",
    "zh-2": "夕阳下的海边，慢镜头。",
    "spaces": "  two before, three after   ",
    "lines": "first line\nsecond line\ttab",
    "emoji": "a 🐈‍⬛ walks by",
    "combining": "cafe\u0301 and café",
    "quotes": 'she says "go" and \\leaves\\',
    "right-to-left": "قطة على السطح",
    "wide": "ｆｕｌｌ width　space",
    "long": "slow dolly over a quiet harbour, " * 60,
}
SECONDS = 40.0


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    write(path, PROMPTS)
    return path


def write(path: Path, prompts: dict[str, str]) -> None:
    lines = [
        json.dumps({"item_id": name, "prompt": text}, ensure_ascii=False) for name, text in prompts.items()
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def start(url: str, token: str, file: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(sys.executable, str(ROOT / "examples" / "client.py"), "--url", url, "--token", token),
            *("--file", str(file), "--out", str(file.parent / "out"), *arguments),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )


def finish(client: subprocess.Popen[str]) -> str:
    try:
        return client.communicate(timeout=SECONDS)[0]
    finally:
        client.kill()


def journal(file: Path) -> dict[str, dict[str, Any]]:
    """What the client's journal says last of each item."""
    path = file.with_name(file.name + ".oncereel")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = [json.loads(line) for line in text.split("\n")[:-1]]
    return {line["item_id"]: line for line in lines}


def balance(product: ProductProcess) -> Decimal:
    return Decimal(product.api("GET", "/api/account").json["balance"])


def jobs(product: ProductProcess) -> int:
    assert product.simulator is not None
    return product.simulator.count()


def test_each_prompt_is_made_and_paid_once_though_answers_are_lost_and_the_client_is_killed(
    product: ProductProcess, prompts: Path
) -> None:
    before, jobs_before = balance(product), jobs(product)

    posted: list[bytes] = []

    def rule(request: Request) -> Fate:
        if request.method == "GET":
            return Fate.ANSWER_LOST if request.number % 9 == 0 else Fate.PASSED
        if request.body in posted:
            return Fate.PASSED
        posted.append(request.body)
        return (Fate.ANSWER_LOST, Fate.REQUEST_LOST, Fate.PASSED)[len(posted) % 3]

    with LossyProxy(product.port, rule) as proxy:
        client = start(proxy.url, product.token, prompts, "--at-once", "6")
        until = time.monotonic() + SECONDS
        while jobs(product) < jobs_before + 3 and time.monotonic() < until:
            time.sleep(0.02)
        client.kill()
        finish(client)
        left = [item for item in journal(prompts).values() if item["state"] in ("new", "open")]
        assert len(left) >= 2, "it was killed too late to show anything"
        told = finish(again := start(proxy.url, product.token, prompts, "--at-once", "6"))
        assert again.returncode == 0, told
        assert proxy.count(Fate.ANSWER_LOST, method="POST") == len(PROMPTS) // 3
        assert proxy.count(Fate.REQUEST_LOST, method="POST") == len(PROMPTS) // 3

    assert_each_was_made_once(product, prompts, jobs_before, before)
    assert told.count("4.16\N{NO-BREAK SPACE}USDC was charged.") == len(left)

    # Losing all memory costs nothing: the same ids are derived again, and the server knows them.
    prompts.with_name("prompts.jsonl.oncereel").unlink()
    told = finish(third := start(product.url, product.token, prompts))
    assert third.returncode == 0, told
    assert_each_was_made_once(product, prompts, jobs_before, before)
    product.manage("audit")
    product.assert_invariants()


def assert_each_was_made_once(product: ProductProcess, file: Path, jobs_before: int, before: Decimal) -> None:
    known = journal(file)
    assert {name: item["state"] for name, item in known.items()} == dict.fromkeys(PROMPTS, "completed")
    shown = {name: product.video(item["id"]) for name, item in known.items()}
    assert {name: video["prompt"].encode() for name, video in shown.items()} == {
        name: text.encode() for name, text in PROMPTS.items()
    }
    assert {video["charge"]["state"] for video in shown.values()} == {"settled"}
    assert jobs(product) == jobs_before + len(PROMPTS)
    assert balance(product) == before - len(PROMPTS) * PRICE
    stored = {
        entry["id"]: entry["sha256"] for entry in product.api("GET", "/api/files?limit=100").json["results"]
    }
    for name, video in shown.items():
        fetched = (file.parent / "out" / f"{name}.mp4").read_bytes()
        assert hashlib.sha256(fetched).hexdigest() == stored[video["result"]["file"]], name
    assert not list((file.parent / "out").glob("*.part"))


def test_a_request_that_never_arrives_is_fenced_and_its_late_arrival_is_not_charged(
    product: ProductProcess, tmp_path: Path
) -> None:
    before, jobs_before = balance(product), jobs(product)
    file = tmp_path / "one.jsonl"
    write(file, {"lost": "a letter in the sea"})

    def rule(request: Request) -> Fate:
        is_order = (request.method, request.path) == ("POST", "/api/videos")
        return Fate.REQUEST_LOST if is_order else Fate.PASSED

    with LossyProxy(product.port, rule) as proxy:
        told = finish(client := start(proxy.url, product.token, file))
        assert client.returncode == 1
        assert told.splitlines() == [
            "lost  abandoned  Never received, not charged. Another --run orders it again.",
            "1 abandoned",
        ]
        assert len(proxy.lost) == 4, "the first POST and three more"
        assert len(set(proxy.lost)) == 1, "the same id and the same body each time"
        late = proxy.deliver(proxy.lost[0])
    assert late.startswith(b"HTTP/1.1 410 ")
    entry = product.api("GET", f"/api/videos/{journal(file)['lost']['id']}")
    assert (entry.status, entry.json["code"], entry.json["charge"]["state"]) == (
        410,
        "abandoned",
        "not_charged",
    )
    assert (balance(product), jobs(product)) == (before, jobs_before)


def test_a_token_that_is_not_accepted_stops_the_client_and_keeps_everything(
    product: ProductProcess, tmp_path: Path
) -> None:
    jobs_before = jobs(product)
    file = tmp_path / "one.jsonl"
    write(file, {"one": "a boat"})
    told = finish(client := start(product.url, "or_wrong", file))
    assert (client.returncode, "Everything is kept" in told) == (2, True)
    kept = journal(file)["one"]
    assert (kept["state"], kept["body"]["prompt"], jobs(product)) == ("open", "a boat", jobs_before)
    told = finish(client := start(product.url, product.token, file))
    assert (client.returncode, told.splitlines()[-1]) == (0, "1 completed")
    assert journal(file)["one"]["id"] == kept["id"]
    assert jobs(product) == jobs_before + 1


def test_an_item_without_money_is_told_as_not_charged_and_not_sent(
    product: ProductProcess, tmp_path: Path
) -> None:
    product.manage("create_user", "poor", "--password", "correct horse battery")
    token, jobs_before = product.manage("create_token", "poor").strip(), jobs(product)
    file = tmp_path / "one.jsonl"
    write(file, {"one": "a boat"})
    told = finish(client := start(product.url, token, file))
    assert client.returncode == 1
    assert told.splitlines()[0].startswith("one  insufficient_balance  ")
    assert "not charged" in told or "nothing was charged" in told
    assert jobs(product) == jobs_before


def ids(path: Path, *, run: str = "1", model: str = "veo3.1") -> list[str]:
    return [make_video(*item, model=model, run=run).id for item in read_items(path)]


def test_an_added_or_moved_line_leaves_the_ids_of_the_others_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "prompts.txt"
    path.write_text("a cat\na dog\na cat\n", encoding="utf-8")
    first = ids(path)
    assert len(set(first)) == 3, "equal lines are two orders"
    path.write_text("a horse\na dog\na cat\na cat\n", encoding="utf-8")
    assert set(first) < set(ids(path))


@pytest.mark.parametrize("change", [{"run": "2"}, {"model": "veo3.1-fast"}])
def test_another_run_or_model_is_another_order(prompts: Path, change: dict[str, str]) -> None:
    assert not set(ids(prompts)) & set(ids(prompts, **change))


def test_an_item_id_that_is_there_twice_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    line = json.dumps({"item_id": "one", "prompt": "a boat"})
    path.write_text(f"{line}\n{line}\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="item_id one is there twice; nothing was sent"):
        list(read_items(path))
