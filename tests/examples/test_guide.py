"""The commands of docs/api.md run as they are written."""

import os
import re
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

from tests.product_process import ROOT, ProductProcess

SECONDS = 40.0


@pytest.mark.skipif(shutil.which("curl") is None and not os.environ.get("CI"), reason="curl is missing")
def test_the_commands_of_the_guide_order_follow_fetch_and_delete_one_video(
    product: ProductProcess, tmp_path: Path
) -> None:
    assert product.simulator is not None
    before, jobs_before = balance(product), product.simulator.count()
    guide = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", guide, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 6
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "URL": product.url, "TOKEN": product.token},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "idempotent-replayed: true" in done.stdout.lower()
    assert '"code":"not_received"' in done.stdout
    assert '"code":"abandoned"' in done.stdout
    assert b"ftyp" in (tmp_path / "cat.mp4").read_bytes()[:12]
    assert product.simulator.count() == jobs_before + 1
    assert balance(product) == before - Decimal("2.08")


def balance(product: ProductProcess) -> Decimal:
    return Decimal(product.api("GET", "/api/account").json["balance"])
