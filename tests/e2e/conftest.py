"""A real Chromium at the product's real processes. What the browser complains about fails the test."""

import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.product_process import ProductProcess
from tests.simulator_process import SimulatorProcess

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PASSWORD = "a long walk home"
PATIENCE_MILLISECONDS = 20_000  # two cores, shared with the product's own processes
QUICK = {"FIRST_POLL_SECONDS": "1", "SLOWEST_POLL_SECONDS": "2", "WEB_WORKERS": "1"}

expect.set_options(timeout=PATIENCE_MILLISECONDS)


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProductProcess]:
    """The product with a provider whose jobs take two seconds unless the prompt says otherwise."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium: install it or name it in CHROMIUM")
    folder = tmp_path_factory.mktemp("product")
    simulator = SimulatorProcess(folder / "provider", seconds=2).start()
    try:
        with ProductProcess(folder, simulator=simulator, env=QUICK) as running:
            yield running
    finally:
        simulator.stop()


@pytest.fixture(scope="session")
def browser(product: ProductProcess) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


@dataclass
class Person:
    """Somebody with money of their own, so that no test sees another one's charges."""

    product: ProductProcess
    name: str
    token: str

    def api(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Token {self.token}", "Content-Type": "application/json"}
        return self.product.request(method, path, body=body, headers=headers)

    def videos(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.api("GET", "/api/videos").json["results"]
        return found

    def charges(self) -> list[str]:
        """What left the balance for videos, newest first."""
        lines = self.api("GET", "/api/account/transfers?limit=100").json["results"]
        return [line["amount"] for line in lines if line["kind"] == "charge"]

    def wait_until(self, client_id: str, state: str, *, seconds: float = 30) -> None:
        """Return once the video is in that state. Raises: AssertionError."""
        until = time.monotonic() + seconds
        while (now := self.api("GET", f"/api/videos/{client_id}").json["state"]) != state:
            assert time.monotonic() < until, f"{now}, not {state}\n{self.product.logs()}"
            time.sleep(0.1)

    def balance(self) -> str:
        return str(self.api("GET", "/api/account").json["balance"])


MAKE_PEOPLE = """
from django.utils import timezone
from accounts import operations as accounts
from billing import operations as billing
for number in range({count}):
    name, now = f"person-{{number}}", timezone.now()
    user = accounts.create_user(username=name, password={password!r})
    billing.top_up(owner_id=user.pk, amount_micros=100_000_000, reference=name, actor="e2e", now=now)
    print(name, accounts.create_token(user=user, name="e2e", now=now))
"""


@pytest.fixture(scope="session")
def people(product: ProductProcess, request: pytest.FixtureRequest) -> list[Person]:
    """One for each test, made at once: starting the product's interpreter takes longer than most steps."""
    count = len(request.session.items)
    lines = product.python(MAKE_PEOPLE.format(count=count, password=PASSWORD)).split("\n")
    made = [line.split() for line in lines if line.startswith("person-")]
    return [Person(product, name, token) for name, token in made]


@pytest.fixture
def person(people: list[Person], product: ProductProcess) -> Iterator[Person]:
    """Somebody new with 100 USDC; afterwards the books of the whole product are audited."""
    yield people.pop()
    product.assert_invariants()


@dataclass
class Visit:
    """A browser of one person, and what it complained about."""

    context: BrowserContext
    base: str
    person: Person
    complaints: list[str] = field(default_factory=list)
    tolerated: list[str] = field(default_factory=list)

    def tolerate(self, pattern: str) -> None:
        """A fault that the test itself makes shows up in the console."""
        self.tolerated.append(pattern)

    def tab(self, path: str = "/videos/") -> Page:
        page = self.context.new_page()
        page.on("console", lambda message: self._hear(message.type, message.text))
        page.on("pageerror", lambda error: self._hear("error", str(error)))
        page.on("request", lambda request: self._watch(request.url))
        page.goto(f"{self.base}{path}")
        return page

    def sign_in(self) -> Page:
        page = self.tab("/accounts/login/?next=/videos/")
        page.fill("[name=login]", self.person.name)
        page.fill("[name=password]", PASSWORD)
        page.click("main button[type=submit]")
        page.wait_for_url(f"{self.base}/videos/")
        return page

    def unexpected(self) -> list[str]:
        return [
            complaint
            for complaint in self.complaints
            if not any(re.search(pattern, complaint) for pattern in self.tolerated)
        ]

    def _hear(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(f"{kind}: {text}")

    def _watch(self, url: str) -> None:
        if not url.startswith((f"{self.base}/", "data:", "blob:")):
            self.complaints.append(f"foreign request: {url}")


@pytest.fixture
def visit(browser: Browser, person: Person) -> Iterator[Callable[..., Visit]]:
    """Opens a browser of its own for the person; keyword arguments are Playwright's for a context."""
    opened: list[Visit] = []

    def open_one(**options: Any) -> Visit:
        settings = {"locale": "en-GB", "viewport": {"width": 1280, "height": 900}, **options}
        context = browser.new_context(**settings)
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        opened.append(Visit(context, person.product.url, person))
        return opened[-1]

    yield open_one
    complaints = [complaint for one in opened for complaint in one.unexpected()]
    for one in opened:
        one.context.close()
    assert complaints == []


def unique(prompt: str) -> str:
    """The prompt with a mark that no other test's has."""
    return f"{prompt} #{uuid.uuid4().hex[:10]}"


def jobs_of(product: ProductProcess, prompt: str) -> int:
    """How many jobs the provider's own journal has for a prompt of `unique`."""
    assert product.simulator is not None
    found = re.search(r"#[0-9a-f]{10}", prompt)
    assert found is not None
    return len([job for job in product.simulator.jobs() if found.group() in json.dumps(job)])
