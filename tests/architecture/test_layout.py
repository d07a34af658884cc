"""Where things are and what they are called: who knows one app knows all."""

from pathlib import Path

from tests.architecture.sources import APPS, ROOT, functions, python_files, shown, tree

LONGEST_FILE = 500  # lines; about 400 is where to stop and think
LONGEST_FUNCTION = 60  # lines, of the product; a test may tell a longer story
BANNED_NAMES = {
    "utils",
    "util",
    "helpers",
    "helper",
    "services",
    "service",
    "common",
    "manager",
    "managers",
    "misc",
}

# What any app may have. A reader who looks for a price, a state or a page looks here first.
SHARED_NAMES = {
    "admin",
    "api",
    "apps",
    "audit",
    "checks",
    "errors",
    "forms",
    "invariants",
    "kinds",
    "management",
    "migrations",
    "models",
    "operations",
    "pages",
    "prices",
    "queries",
    "states",
    "tasks",
    "urls",
}
# What only one app has, because only it has that noun or verb.
OWN_NAMES = {
    "accounts": {"authentication", "language"},
    "billing": {"words"},
    "files": {"content", "storage"},
    "tombstones": set[str](),
    # The engine: one file a verb of a task's life, so that each is read in one sitting.
    "videos": {
        "catalogue",
        "composer",
        "deletion",
        "desk",
        "desk_queues",
        "endings",
        "engine",
        "events",
        "files_api",
        "hooks",
        "messages",
        "presentation",
        "problems",
        "providers",
        "locks",
        "requests",
        "schema",
        "time_limits",
    },
}


def test_every_app_has_the_same_file_names() -> None:
    unexpected = []
    for app in APPS:
        if app == "core":
            continue  # no business noun: one file for each thing that all others need
        for path in (ROOT / app).iterdir():
            if path.suffix not in ("", ".py") or path.name.startswith(("_", ".")):
                continue
            if path.stem not in SHARED_NAMES | OWN_NAMES[app]:
                unexpected.append(shown(path))
    # Name them as the other apps do, or add them above if only this app has that noun.
    assert not unexpected, "\n".join(unexpected)


def test_every_app_has_models_and_operations_and_core_has_no_models() -> None:
    for app in APPS:
        names = {path.stem for path in (ROOT / app).iterdir()}
        assert ("models" in names) == (app != "core"), app
        assert ("operations" in names) == (app != "core"), app


def test_no_module_has_a_name_that_says_nothing() -> None:
    found = [
        shown(file)
        for file in python_files(with_tests=True)
        for name in (file.stem, *file.relative_to(ROOT).parent.parts)
        if BANNED_NAMES & set(name.split("_"))
    ]
    assert not found, "\n".join(found)


def test_no_file_is_longer_than_one_sitting() -> None:
    lengths = {shown(file): len(file.read_text().splitlines()) for file in python_files(with_tests=True)}
    assert {file: length for file, length in lengths.items() if length > LONGEST_FILE} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    long = {
        f"{shown(file, node)} {node.name}": length
        for file in python_files()
        for node in functions(tree(file))
        if (length := (node.end_lineno or node.lineno) - node.lineno + 1) > LONGEST_FUNCTION
    }
    assert long == {}


def test_the_ci_script_can_be_run() -> None:
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


def test_every_package_of_the_project_is_known_to_these_tests() -> None:
    """A new app that nobody lists would be checked by nothing."""
    from tests.architecture.sources import PACKAGES

    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages == {*PACKAGES, "tests", "bench"}
    assert Path(ROOT / "manage.py").exists()
