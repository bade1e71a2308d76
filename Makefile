# The commands of this project. `make` or `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
UV_VERSION := 0.13.9
BIN := .venv/bin
PROVIDER ?= auto
CLUSTER ?= boathouse
NODES ?= 2
KWOK_NODES ?= 0

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

.venv/installed: requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed: set PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x .tools/bin/uv || { echo "==> uv $(UV_VERSION)"; $(PYTHON) -m venv .tools && .tools/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION); }
	@echo "==> Python packages into .venv"
	@test -x $(BIN)/python || .tools/bin/uv venv --quiet --python $(PYTHON) .venv
	@.tools/bin/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.txt
	@.tools/bin/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

.PHONY: setup
setup: .venv/installed ## Install uv and the Python packages into this folder

.PHONY: lock
lock: .venv/installed ## Renew the hashed requirement files from pyproject.toml
	.tools/bin/uv pip compile -q --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url --all-extras --group dev pyproject.toml -o requirements/dev.txt
	.tools/bin/uv pip compile -q --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url --extra operator pyproject.toml -o requirements/operator.txt
	.tools/bin/uv pip compile -q --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url pyproject.toml -o requirements/task.txt
