# Needs make and a Python of 3.11 or later, nothing else. `make` alone lists the targets.

VENV := .venv
PY := $(VENV)/bin/python
# The first that is new enough and complete; a shim that is on the path may still run nothing.
PYTHONS := python3 python3.13 python3.12 python3.11 python3.14
USABLE := import sys, ensurepip, sqlite3, ssl, venv; sys.exit(sys.version_info < (3, 11))
PIP_INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check --no-input --require-hashes
# More arguments for pytest, such as PYTEST_ARGS="-n 2" or PYTEST_ARGS="-k refund".
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup run test crash-pairs chaos bench lint types audit e2e requirements clean
.DELETE_ON_ERROR:

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/base-installed ## the environment in .venv, for running

run: $(VENV)/base-installed ## the whole product, with demo data and simulated providers
	@exec $(PY) -m config.runner

test: $(VENV)/dev-installed ## all tests but the browser's; on SQLite, or where DATABASE_URL and BROKER_URL point
	$(PY) manage.py compile_locale
	$(PY) -m pytest --ignore=tests/e2e $(PYTEST_ARGS)
	@$(MAKE) --no-print-directory test-javascript

# Python alone is enough for a newcomer; CI misses nothing.
.PHONY: test-javascript
test-javascript:
	@if node -e 'process.exit(process.versions.node.split(".")[0] < 20 ? 1 : 0)' 2>/dev/null; then \
	  node --test $$(find tests/js -name '*.test.mjs' | sort); \
	elif [ "$$CI" = true ]; then \
	  echo "JavaScript tests need node 20 or later, and CI=true requires them." >&2; exit 1; \
	else \
	  echo "JavaScript tests skipped: node 20 or later is missing."; \
	fi

crash-pairs: $(VENV)/dev-installed ## two crashes one after the other, at every pair of points; half an hour
	$(PY) -m pytest tests/crash/pairs.py $(PYTEST_ARGS)

chaos: $(VENV)/dev-installed ## the real processes, killed at random; CHAOS_ARGS for more than the short run
	$(PY) manage.py compile_locale
	$(PY) -m tests.chaos $(CHAOS_ARGS)

bench: $(VENV)/dev-installed ## the product beside its references; needs PostgreSQL, Redis and pgbench
	$(PY) manage.py compile_locale
	$(PY) -m bench $(BENCH_ARGS)

e2e: $(VENV)/dev-installed ## the journeys in Chromium
	$(PY) manage.py compile_locale
	$(PY) -m pytest tests/e2e $(PYTEST_ARGS)

lint: $(VENV)/dev-installed ## style, layers, migrations, deployment checks
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports
	$(PY) manage.py makemigrations --check --dry-run
	$(PY) manage.py lintmigrations $(LINT_MIGRATIONS)
	$(PRODUCTION) $(PY) manage.py check --deploy --fail-level WARNING

# What an app's first migration makes is empty, so nothing in it can lock or break a running version.
LINT_MIGRATIONS := --settings tests.architecture.linting_settings --no-cache --ignore-initial-migrations --quiet ok ignore

# A production as the checks want it; nothing of it leaves this machine.
PRODUCTION = env DEBUG=false SECRET_KEY="$$($(PY) -c 'import secrets; print(secrets.token_urlsafe(64))')" \
  PUBLIC_BASE_URL=https://oncereel.example ALLOWED_HOSTS=oncereel.example FAL_KEY=checked-key:checked-secret

types: $(VENV)/dev-installed ## mypy with the Django plugin
	$(VENV)/bin/mypy

audit: $(VENV)/base-installed ## every invariant against the database; fails on any violation
	$(PY) manage.py audit

requirements: $(PY) ## compile requirements/*.in to pinned versions with hashes
	$(PY) -m pip install --quiet --disable-pip-version-check --no-input uv
	$(VENV)/bin/uv pip compile $(COMPILE) --output-file requirements/base.txt requirements/base.in
	$(VENV)/bin/uv pip compile $(COMPILE) --output-file requirements/dev.txt requirements/dev.in

COMPILE := --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header $(UPGRADE)

clean: ## remove .venv and caches; the data in DATA_DIR stays
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps make a second run instant.
$(PY):
	@for python in $(PYTHONS); do \
	  if $$python -c '$(USABLE)' 2>/dev/null; then echo "Making $(VENV) with $$($$python --version)"; \
	    exec $$python -m venv $(VENV); fi; \
	done; \
	echo "Oncereel needs Python 3.11 or later with venv, ssl and sqlite3 (on Debian: python3 and python3-venv)." >&2; \
	echo "Looked for: $(PYTHONS)" >&2; \
	exit 1

$(VENV)/base-installed: requirements/base.txt | $(PY)
	$(PIP_INSTALL) -r requirements/base.txt
	@touch $@

# dev.txt holds all of base.txt too, at the same versions.
$(VENV)/dev-installed: requirements/dev.txt | $(PY)
	$(PIP_INSTALL) -r requirements/dev.txt
	@touch $@ $(VENV)/base-installed
