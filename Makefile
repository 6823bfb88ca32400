# Everything that a developer types. `make` alone lists it.
#
# python3 (3.11 or newer), make and git are enough to begin with: scripts/uv brings uv where it is absent, and uv fills .venv
# from requirements/dev.txt, whose hashes it checks. Another Python: make PYTHON=/path/to/python3.12 ...

MAKEFLAGS += --no-builtin-rules --no-print-directory
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

BIN := .venv/bin
SHELL_SCRIPTS := .ci/run scripts/attempts scripts/check-wheel scripts/node-bin scripts/prometheus-bin scripts/python scripts/uv
export PYTHON INPUT

.PHONY: help
help: ## List the targets
	@echo 'make TARGET, with TARGET one of:'
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r name text; do printf '  %-14s %s\n' "$$name" "$$text"; done

# --- set-up -------------------------------------------------------------------------------------------------------------

.PHONY: setup
setup: .venv/.ready ## Fill .venv; every other target does so when it has to

.venv/bin/python:
	scripts/uv venv --quiet --clear --python "$$(scripts/python)" .venv

.venv/.ready: requirements/dev.txt pyproject.toml | .venv/bin/python
	scripts/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.txt
	scripts/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

# --- tests and checks ---------------------------------------------------------------------------------------------------

PYTEST := $(BIN)/python -m pytest --numprocesses=auto --dist=worksteal
# 2: tests that start real programs are tried once more where they fail, which is told; CI does so on machines it shares.
ATTEMPTS ?= 1

.PHONY: test
test: lint types contracts quick ## All checks, and all tests but those of the targets below

.PHONY: quick
quick: .venv/.ready ## These tests without the checks; ARGS goes to pytest: make quick ARGS='-k lease'
	$(PYTEST) -m 'not processes and not e2e and not chaos and not apiserver and not simulation' $(ARGS)

.PHONY: processes
processes: .venv/.ready ## The tests that start real agents and kill some of them; ARGS goes to pytest
	scripts/attempts $(ATTEMPTS) $(PYTEST) -m processes $(ARGS)

.PHONY: lint
lint: .venv/.ready ## ruff and shellcheck: style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/shellcheck $(SHELL_SCRIPTS)

.PHONY: format
format: .venv/.ready ## Mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: types
types: .venv/.ready ## mypy, strict, over everything
	$(BIN)/mypy

.PHONY: contracts
contracts: .venv/.ready ## Which module may import which, and which dependency belongs where
	$(BIN)/lint-imports --no-logo
	$(BIN)/deptry thunderagent examples

# --- to see it work -----------------------------------------------------------------------------------------------------

.PHONY: demo
demo: .venv/.ready ## A pool makes reports from CSV files; INPUT=folder for your own
	$(BIN)/thunderagent demo $${INPUT:+--input "$$INPUT"}

.PHONY: bench
bench: .venv/.ready ## Measure throughput, cost of a task, and what an idle agent takes; ARGS goes to it
	$(BIN)/python -m benchmarks $(ARGS)

.PHONY: histories
histories: .venv/.ready ## The simulation as CI runs it: a thousand seeds, and every rule taken away in turn; minutes
	$(PYTEST) -m simulation tests/simulation $(ARGS)

.PHONY: sim
sim: .venv/.ready ## Simulate a thousand histories under faults, or SEEDS=n of them, or replay SEED=n; ARGS goes to it
	$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),1000)) $(ARGS)

.PHONY: stress
stress: .venv/.ready ## Simulate a million tasks: which run twice, and how evenly agents share; ARGS goes to it
	$(BIN)/python -m tests.simulation.stress $(ARGS)

.PHONY: faults
faults: .venv/.ready ## Pause, rob and kill real agents, and lose replies, ten thousands of times; ARGS goes to it
	$(BIN)/python -m tests.faults $(ARGS)

# --- what is generated --------------------------------------------------------------------------------------------------

.PHONY: docs
docs: .venv/.ready ## Write the pages of docs/ that are made from the code
	$(BIN)/python -m scripts.reference

.PHONY: manifests
manifests: .venv/.ready ## Write what is made from and for the Helm chart: its CRD, its table of values, manifests/
	$(BIN)/python -m scripts.chart

.PHONY: chart-check
chart-check: .venv/.ready ## See that the chart is right, with helm, which is built if it is nowhere
	$(BIN)/python -m scripts.chart.helm
	CLUSTER_REQUIRED=1 $(PYTEST) tests/chart $(ARGS)

.PHONY: dashboards
dashboards: .venv/.ready ## Write the Grafana dashboards of the chart
	$(BIN)/python -m scripts.dashboards

# Versions stay as they are where they can; UPGRADE=1 takes the newest. Comments and addresses are left out: a lock file
# with hashes needs none, and whoever installs it may have a mirror.
COMPILE := scripts/uv pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 $(if $(UPGRADE),--upgrade)

.PHONY: lock
lock: ## Resolve the dependencies anew into requirements/
	$(COMPILE) pyproject.toml --all-extras --group dev --output-file requirements/dev.txt
	$(COMPILE) pyproject.toml --constraint requirements/dev.txt --output-file requirements/agent.txt
	$(COMPILE) pyproject.toml --group operator --constraint requirements/dev.txt --output-file requirements/operator.txt
	$(COMPILE) pyproject.toml --extra local --constraint requirements/dev.txt --output-file requirements/local.txt
	$(COMPILE) --group build --constraint requirements/dev.txt --output-file requirements/build.txt
	$(COMPILE) --group uv --output-file requirements/uv.txt
	$(COMPILE) --group node --output-file requirements/node.txt
	$(COMPILE) --group ministack --output-file requirements/ministack.txt

.PHONY: dist
dist: .venv/.ready ## Build the wheel and the sdist into dist/
	rm -rf dist
	scripts/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist

.PHONY: check-dist
check-dist: dist ## Install the wheel beside its own dependencies alone, and see that it works
	scripts/check-wheel dist/*.whl

.PHONY: clean
clean: ## Remove all that make has made, .venv and .tools too
	rm -rf .venv .tools .cache dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .grimp_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

-include tests/cluster/cluster.mk
