"""C70: too long, too big; and the page counts as the server does."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import makers
from tests.cases.evidence import changed_tables, rows
from tests.makers import Owner
from videos.catalogue import MAX_PROMPT_CODE_POINTS
from videos.requests import read_request

ROOT = Path(__file__).resolve().parent.parent.parent
VECTORS = json.loads(Path(__file__).with_name("prompt_lengths.json").read_text())
COUNTER = """
import { readFileSync } from "node:fs";
const { PROMPT_LIMIT, countCodePoints } = await import(process.argv[1]);
const vectors = JSON.parse(readFileSync(process.argv[2], "utf8"));
const counts = vectors.map(({ text }) => countCodePoints(text));
process.stdout.write(JSON.stringify({ limit: PROMPT_LIMIT, counts }));
"""


@pytest.mark.django_db
@pytest.mark.parametrize("character", ["a", "猫", "😀"], ids=["ascii", "han", "emoji"])
def test_a_prompt_at_the_limit_is_taken_and_one_more_is_refused_naming_the_limit(
    owner: Owner, simulator: Any, character: str
) -> None:
    before = rows()
    answer = makers.post(owner, makers.order(prompt=character * 4001))
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (400, "invalid", "prompt")
    assert "4,000" in answer.json()["detail"]
    assert changed_tables(before) == []
    answer = makers.post(owner, makers.order(prompt=character * 4000))
    assert answer.status_code == 201
    makers.work()
    assert makers.get(owner, answer.json()["id"]).json()["state"] == "completed"


@pytest.mark.django_db
def test_a_model_with_a_lower_limit_names_its_own(owner: Owner, simulator: Any) -> None:
    before = rows()
    answer = makers.post(owner, makers.order(model="kling-2.5-turbo", prompt="a" * 2501))
    assert (answer.status_code, answer.json()["field"]) == (400, "prompt")
    assert "2,500" in answer.json()["detail"]
    assert changed_tables(before) == []
    assert makers.post(owner, makers.order(model="kling-2.5-turbo", prompt="a" * 2500)).status_code == 201


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("prompt", "a" * 1_000_000),
        ("image_url", "data:image/png;base64," + "A" * 60_000_000),
        ("no_such_field", "x" * 70_000),
    ],
    ids=["prompt of 1 MB", "inline image of 60 MB", "unknown field"],
)
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_body_over_the_limit_is_refused_naming_it_before_any_charge(
    owner: Owner, simulator: Any, field: str, text: str, language: str
) -> None:
    before = rows()
    body = json.dumps({**makers.order(), field: text})
    answer = owner.api.post(
        "/api/videos", body, content_type="application/json", headers={"accept-language": language}
    )
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert "64" in answer.json()["detail"]
    assert changed_tables(before) == []
    assert simulator.posts() == 0


@pytest.mark.django_db
def test_a_short_inline_image_is_refused_by_name_before_any_charge(owner: Owner, simulator: Any) -> None:
    before = rows()
    image = "data:image/png;base64," + "A" * 40_000
    answer = makers.post(owner, makers.order(model="veo3.1-image", image_url=image))
    assert (answer.status_code, answer.json()["field"]) == (400, "image_url")
    assert changed_tables(before) == []


@pytest.mark.django_db
def test_the_limit_that_is_told_is_the_limit_that_holds(owner: Owner, simulator: Any) -> None:
    told = {row["model"]: row["max_prompt"] for row in owner.api.get("/api/models").json()["results"]}
    assert (told["veo3.1"], told["kling-2.5-turbo"]) == (MAX_PROMPT_CODE_POINTS, 2500) == (4000, 2500)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: ascii(vector["text"]))
def test_the_server_counts_code_points(vector: dict[str, Any]) -> None:
    filled = vector["text"] + "a" * (4000 - vector["code_points"])
    assert read_request(makers.order(prompt=filled)).prompt == filled
    assert len(vector["text"]) == vector["code_points"]


def test_the_page_counts_the_same() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node to run the page's own counter")
    module = ROOT / "static" / "js" / "rules" / "codepoints.js"
    vectors = Path(__file__).with_name("prompt_lengths.json")
    done = subprocess.run(
        [node, "--input-type=module", "--eval", COUNTER, module.as_uri(), str(vectors)],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    assert json.loads(done.stdout) == {
        "limit": MAX_PROMPT_CODE_POINTS,
        "counts": [vector["code_points"] for vector in VECTORS],
    }
