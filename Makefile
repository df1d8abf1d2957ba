# Everything a developer needs from Python 3.11-3.13 and make alone. `make` lists the targets.
# The virtual environment is filled from a lock file with hashes; stamps in it say for which lock.

PYTHON ?= python3
WORKERS ?= 2
UV_VERSION := 0.13.9

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --quiet

# universal: one lock for every system and Python; no address of a registry or a folder ends up in it.
# extras stay on names, since pip refuses gql[requests] in hash mode when the lock says gql.
LOCK := uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-strip-extras \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade)

.NOTPARALLEL:
.PHONY: help demo ui test test-distributed crash hostile fuzz screenshots lint format fixtures lock clean python

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(VENV)/.locked $(VENV)/.project ## archive three months of made-up reports, from an empty folder
	$(BIN)/asset-pipeline demo

ui: $(VENV)/.locked $(VENV)/.project ## open Dagster's pages on what is archived (PORT=3000)
	$(BIN)/asset-pipeline ui $(if $(PORT),--port $(PORT))

test: $(VENV)/.locked-dev $(VENV)/.project ## run the tests (WORKERS=2 at once)
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --durations 10

test-distributed: $(VENV)/.locked-dev $(VENV)/.project ## work a month on Dask workers of which one is lost
	ASSET_PIPELINE_TESTS_LONG=1 $(BIN)/python -m pytest --durations 5 --pyargs asset_pipeline_tests.work.test_distributed

crash: $(VENV)/.locked-dev $(VENV)/.project ## kill and stall workers, the database and the store, hundreds of times
	ASSET_PIPELINE_TESTS_LONG=1 $(BIN)/python -m pytest --capture no --durations 5 asset_pipeline_tests/crash

screenshots: $(VENV)/.locked-dev $(VENV)/.project ## take the pictures of docs/images anew (needs Chromium)
	SCREENSHOTS=docs/images BROWSER_TESTS=required $(BIN)/python -m pytest asset_pipeline_tests/ui/test_dagster_pages.py

hostile: $(VENV)/.locked-dev $(VENV)/.project ## read the whole hostile set through the command line (two minutes)
	ASSET_PIPELINE_TESTS_LONG=1 $(BIN)/python -m pytest asset_pipeline_tests/hostile/test_command_line.py

fuzz: $(VENV)/.locked-dev $(VENV)/.project ## read damaged documents for ten minutes (SECONDS=600)
	ASSET_PIPELINE_FUZZ_SECONDS=$(or $(SECONDS),600) $(BIN)/python -m pytest asset_pipeline_tests/fuzz

lint: $(VENV)/.locked-dev $(VENV)/.project ## check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.locked-dev ## put style and format right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

fixtures: $(VENV)/.locked $(VENV)/.project ## draw the made-up reports again
	$(BIN)/python fixtures/make.py

lock: python ## write the lock files after a change of pyproject.toml (UPGRADE=1: newest versions)
	test -x .venv-lock/bin/uv || { $(PYTHON) -m venv .venv-lock && .venv-lock/bin/python -m pip install --quiet uv==$(UV_VERSION); }
	echo 'setuptools>=77' | PATH=".venv-lock/bin:$$PATH" $(LOCK) --extra dev --extra distributed --output-file requirements-dev.lock pyproject.toml -
	echo 'setuptools>=77' | PATH=".venv-lock/bin:$$PATH" $(LOCK) --constraint requirements-dev.lock --output-file requirements.lock pyproject.toml -
	printf 'setuptools>=77\ndagster-k8s==0.29.27\n' | PATH=".venv-lock/bin:$$PATH" $(LOCK) --extra distributed --constraint requirements-dev.lock --output-file deploy/requirements.lock pyproject.toml -

clean: ## remove what make made; keeps .asset_pipeline, where the archive is
	rm -rf $(VENV) .venv-lock .mypy_cache .ruff_cache .pytest_cache .hypothesis build asset_pipeline.egg-info
	find asset_pipeline asset_pipeline_tests fixtures -name __pycache__ -type d -prune -exec rm -rf {} +

python:
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON). Install Python 3.11, 3.12 or 3.13, or say which: make demo PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { echo "$$($(PYTHON) --version) will not do: Python 3.11, 3.12 or 3.13 is needed. Say which: make demo PYTHON=python3.12" >&2; exit 1; }

$(VENV)/.made:
	@$(MAKE) --no-print-directory python
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.locked: requirements.lock | $(VENV)/.made
	@echo "Installing what requirements.lock names; the first time this takes about a minute."
	$(PIP) --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.locked-dev: requirements-dev.lock | $(VENV)/.made
	@echo "Installing what requirements-dev.lock names; the first time this takes a minute or two."
	$(PIP) --require-hashes -r requirements-dev.lock
	@touch $@ $(VENV)/.locked

# Without build isolation, because setuptools is in the lock and nothing else may be fetched.
$(VENV)/.project: pyproject.toml | $(VENV)/.locked
	$(PIP) --no-build-isolation --no-deps --editable .
	@touch $@
