"""The journal is the truth: it is on the disk before the answer is, and a kill changes nothing."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from simulator.jobs import decide
from simulator.journal import Journal, connect, end_job, insert_job, insert_post
from tests.simulator.conftest import Receiver, wait_until
from tests.simulator.orders import KEY, accepted, make_job, read, submit
from tests.simulator_process import ROOT, SimulatorProcess

Start = Callable[..., SimulatorProcess]


def journal_path(simulator: SimulatorProcess) -> Path:
    return simulator.data_dir / "simulator" / "journal.sqlite3"


def test_a_job_whose_answer_was_lost_is_on_the_disk_after_a_kill(simulator: SimulatorProcess) -> None:
    with pytest.raises(ConnectionResetError):
        submit(simulator, "a cat [sim: drop_after_accept; marker=m1]", seed=5)
    simulator.kill()
    connection = connect(journal_path(simulator))
    rows = connection.execute("SELECT marker, outcome, billed, json_extract(input, '$.seed') FROM jobs")
    assert [tuple(row) for row in rows] == [("m1", "success", 1, 5)]
    connection.close()


def test_jobs_survive_a_kill_and_carry_on(new_simulator: Start, receiver: Receiver) -> None:
    simulator = new_simulator(seconds=1.0)
    waiting = accepted(simulator, "a cat [sim: queue_forever]")
    ending = accepted(simulator, webhook=f"{receiver.url}/h")
    over = accepted(simulator, "a cat [sim: seconds=0]")
    simulator.restart(kill=True)
    assert read(simulator, waiting["status_url"]).json["status"] == "IN_QUEUE"
    assert read(simulator, over["status_url"]).json["status"] == "COMPLETED"
    receiver.wait(1)
    assert read(simulator, ending["response_url"]).status == 200
    assert [job["outcome"] for job in simulator.jobs()] == [None, "success", "success"]
    assert simulator.jobs()[1]["ended_at"] == pytest.approx(simulator.jobs()[1]["received_at"] + 1.0)


def test_a_job_that_ended_while_the_simulator_was_down_ended_at_its_own_time(
    new_simulator: Start, receiver: Receiver
) -> None:
    simulator = new_simulator(seconds=0.5)
    accepted(simulator, webhook=f"{receiver.url}/h")
    simulator.kill()
    simulator.start()
    receiver.wait(1)
    (job,) = simulator.jobs()
    assert job["ended_at"] == pytest.approx(job["received_at"] + 0.5)
    assert len(simulator.deliveries()) == 1


def test_the_signing_key_stays_over_a_restart(simulator: SimulatorProcess) -> None:
    before = simulator.request("GET", "/.well-known/jwks.json").json
    simulator.restart()
    assert simulator.request("GET", "/.well-known/jwks.json").json == before
    assert (before["keys"][0]["kty"], before["keys"][0]["crv"]) == ("OKP", "Ed25519")
    key_file = simulator.data_dir / "simulator" / "webhook_key.pem"
    assert key_file.stat().st_mode & 0o777 == 0o600


def test_every_post_is_counted_and_says_what_became_of_it(simulator: SimulatorProcess) -> None:
    submit(simulator)
    submit(simulator, "")
    submit(simulator, key=None)
    submit(simulator, "a cat [sim: refuse=429]")
    with pytest.raises(ConnectionError):
        submit(simulator, "a cat [sim: drop_before_accept]")
    posts = simulator.request("GET", "/_sim/posts").json
    assert [(post["verdict"], post["status"]) for post in posts] == [
        ("accepted", 200),
        ("refused", 422),
        ("refused", 401),
        ("refused", 429),
        ("dropped", None),
    ]
    assert [post["request_id"] for post in posts] == [simulator.jobs()[0]["request_id"]] + [None] * 4
    assert all(KEY not in json.dumps(row) for row in [*posts, *simulator.jobs()])


def test_jobs_are_found_by_marker_input_webhook_and_endpoint(simulator: SimulatorProcess) -> None:
    accepted(simulator, "the red fox", seed=77)
    accepted(simulator, webhook="http://127.0.0.1:9/hooks/fal/k-123")
    accepted(simulator, 'say "hi" [sim: marker=mine]', endpoint="fal-ai/veo3.1")
    assert [job["marker"] for job in simulator.jobs()] == ["77", "k-123", "mine"]
    assert [simulator.count(marker=marker) for marker in ("red fox", "k-123", "mine", 'y "h', "none")] == [
        1,
        1,
        1,
        1,
        0,
    ]
    assert [job["marker"] for job in simulator.jobs(endpoint="fal-ai/veo3.1")] == ["mine"]
    assert len(simulator.request("GET", "/_sim/jobs?limit=2").json) == 2


def test_any_character_of_a_prompt_is_kept(simulator: SimulatorProcess) -> None:
    prompt = "nul \x00 one \x01 lone \ud800 猫"
    accepted(simulator, prompt)
    accepted(simulator, prompt)
    assert [job["input"]["prompt"] for job in simulator.jobs()] == [prompt, prompt]
    assert list(simulator.request("GET", "/_sim/summary").json["duplicates_by_prompt"].values()) == [2]


def test_the_command_prints_what_was_done_more_than_once(simulator: SimulatorProcess) -> None:
    for seed in (1, 1, 2):
        accepted(simulator, f"cat {seed}", seed=seed)
    accepted(simulator, "[sim: fail] dog", seed=3)
    submit(simulator, "")
    command = [sys.executable, "-m", "simulator", "journal", "--data-dir", str(simulator.data_dir)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=30, check=True)
    assert json.loads(done.stdout) == {
        "jobs": 4,
        "billed": 3,
        "posts": 5,
        "duplicates_by_marker": {"1": 2},
        "duplicates_by_prompt": {"cat 1": 2},
    }


def test_the_command_says_so_when_there_is_no_journal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "simulator", "journal", "--data-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (1, b"there is no journal\n")
    assert list(tmp_path.iterdir()) == []


def test_many_at_once_are_each_taken_once(simulator: SimulatorProcess) -> None:
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda seed: accepted(simulator, seed=seed), range(200)))
    ids = {reply["request_id"] for reply in replies}
    assert (len(ids), simulator.count(), simulator.posts()) == (200, 200, 200)
    assert {job["request_id"] for job in simulator.jobs()} == ids


def test_a_job_ends_once_however_many_ask(new_simulator: Start, receiver: Receiver) -> None:
    simulator = new_simulator(seconds=0.3)
    body = accepted(simulator, webhook=f"{receiver.url}/h")
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: read(simulator, body["status_url"]).status, range(400)))
    wait_until(lambda: read(simulator, body["status_url"]).status == 200)
    assert set(statuses) <= {200, 202}
    receiver.wait(1)
    assert len(simulator.deliveries()) == 1


def test_an_end_is_recorded_once_and_a_second_one_changes_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite3")
    job = make_job("[sim: fail]")
    connection = connect(tmp_path / "journal.sqlite3")
    insert_job(connection, job)
    assert end_job(connection, "r", verdict=decide(job), at=110.0) is True
    assert end_job(connection, "r", verdict=decide(job, cancelled=True), at=120.0) is False
    ended = journal.find_job("r")
    assert ended is not None
    assert (ended.ended_at, ended.outcome) == (110.0, "error")
    connection.close()
    journal.close()


def test_a_write_that_fails_takes_no_other_with_it(tmp_path: Path) -> None:
    async def scenario() -> list[object]:
        journal = Journal(tmp_path / "journal.sqlite3")

        def good(connection: sqlite3.Connection) -> None:
            insert_post(connection, at=1.0, path="/a", key_digest=None, verdict="refused", status=1)

        def bad(connection: sqlite3.Connection) -> None:
            good(connection)
            connection.execute("INSERT INTO posts (row) VALUES ('no')")

        results = await asyncio.gather(
            *(journal.run(write) for write in (good, bad, good)), return_exceptions=True
        )
        (count,) = journal.read.execute("SELECT count(*) FROM posts").fetchone()
        journal.close()
        return [*results, count]

    first, second, third, count = asyncio.run(scenario())
    assert (first, third, count) == (None, None, 2)
    assert isinstance(second, sqlite3.IntegrityError)
