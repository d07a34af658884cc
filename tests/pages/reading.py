"""Reads pages as a browser without script does: texts, forms, and what sending a form would send."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from django.http import HttpResponse
from django.test import Client

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
BACKEND = "django.contrib.auth.backends.ModelBackend"  # two are installed, so a test names one


@dataclass
class Form:
    """A form with the values that it would send as it stands, and its submit buttons by name."""

    action: str
    method: str
    values: dict[str, str] = field(default_factory=dict)
    buttons: dict[str, str] = field(default_factory=dict)
    disabled: set[str] = field(default_factory=set)


class Page(HTMLParser):
    """A parsed answer."""

    def __init__(self, response: Any) -> None:
        super().__init__()
        self.status = response.status_code
        self.source = response.content.decode()
        self.forms: list[Form] = []
        self.texts: list[str] = []
        self.links: list[str] = []
        self.tasks: list[str] = []
        self.language = ""
        self._open: list[str] = []
        self._select = ""
        self._textarea: str | None = None
        self.feed(self.source)

    @property
    def text(self) -> str:
        """What is read, with white space folded; no-break spaces are spaces here."""
        return " ".join(" ".join(self.texts).replace("\xa0", " ").split())

    def form(self, action: str) -> Form:
        found = [form for form in self.forms if form.action == action]
        assert found, (action, [form.action for form in self.forms])
        return found[0]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag not in VOID:
            self._open.append(tag)
        if "template" in self._open:
            return
        if tag == "html":
            self.language = given.get("lang", "")
        elif tag == "form":
            self.forms.append(Form(given.get("action", ""), given.get("method", "get")))
        elif tag in ("a", "link", "script", "img", "video", "source"):
            self.links.append(given.get("href") or given.get("src") or "")
        elif tag == "article" and given.get("data-task"):
            self.tasks.append(given["data-task"])
        if self.forms:
            self._control(tag, given)

    def _control(self, tag: str, given: dict[str, str]) -> None:
        form, name = self.forms[-1], given.get("name", "")
        if tag == "input" and name:
            ticks = given.get("type") in ("radio", "checkbox")
            if not ticks or "checked" in given:
                form.values[name] = given.get("value", "")
        elif tag == "button" and name:
            form.buttons[name] = given.get("value", "")
            if "disabled" in given:
                form.disabled.add(name)
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select and ("selected" in given or self._select not in form.values):
            form.values[self._select] = given.get("value", "")
        elif tag == "textarea":
            self._textarea = name
            form.values[name] = ""

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass
        if tag == "select":
            self._select = ""
        elif tag == "textarea":
            self._textarea = None

    def handle_data(self, data: str) -> None:
        if self._textarea is not None and "template" not in self._open:
            self.forms[-1].values[self._textarea] += data
        if not {"script", "style", "template", "title"} & set(self._open):
            self.texts.append(data)


def get(client: Client, path: str, **headers: str) -> Page:
    return Page(client.get(path, headers=headers))


def press(
    client: Client, form: Form, button: str | None = None, *, path: str | None = None, **changes: str
) -> HttpResponse:
    """Send the form with that button; the answer, redirects not followed."""
    values = {**form.values, **changes}
    if button is not None:
        assert button not in form.disabled
        values[button] = form.buttons[button]
    answer: Any = client.post(path or form.action, values)
    return answer
