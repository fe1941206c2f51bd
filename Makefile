# Reinstalls only when one of these changed.
SETUP := pyproject.toml $(wildcard systems/*/pyproject.toml) demo/pyproject.toml scripts/setup.sh requirements-dev.txt \
    tests/foreign/bullmq/package-lock.json
VENV := .venv
# redis-om pulls in types-redis, which hides redis-py's own types from mypy: benchmarks live apart.
BENCH_VENV := .venv-bench
# Extra arguments for pytest: make test ARGS="-k expired"
ARGS ?=
# Most tests wait for a server, so three processes share the work, a file at a time, in the order of conftest.py.
# With a debugger: make test TESTERS=0
TESTERS ?= 3
PYTEST := pytest --numprocesses $(TESTERS) --dist loadfile --no-loadscope-reorder
COVERAGE := build/coverage.json

# The installed pyright and its own node decide: no advice about newer versions, no node of the machine.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PYRIGHT_PYTHON_GLOBAL_NODE := 0

.DEFAULT_GOAL := help
.PHONY: help run test coverage lint check format bench fuzz matrix soak lock advisories clean servers

help:
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.runs ## everything at once with live samples, in a browser (Ctrl-C ends it)
	@$(VENV)/bin/keywright up $(ARGS)

test: $(VENV)/.ready servers ## run the tests (ARGS="-k name" narrows); in CI with coverage
ifeq ($(CI),true)
	@$(MAKE) --no-print-directory coverage
else
	@$(VENV)/bin/python -m $(PYTEST) $(ARGS)
endif

coverage: $(VENV)/.ready servers ## the tests with line coverage; fails below the floor
	@mkdir -p $(dir $(COVERAGE))
	@$(VENV)/bin/python -m slipcover --json --out $(COVERAGE) -m $(PYTEST) \
	    -W "ignore:Module already imported so cannot be rewritten; slipcover" $(ARGS)
	@$(VENV)/bin/python scripts/coverage.py $(COVERAGE) $(if $(ARGS),,--floor)

lint: $(VENV)/.ready ## check style, types and import layers
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/pyright
	@$(VENV)/bin/lint-imports --no-logo
ifeq ($(CI),true)
	@$(MAKE) --no-print-directory advisories
endif

check: ## what CI runs: lint, then test
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory test

format: $(VENV)/.ready ## rewrite the code in the house style
	@$(VENV)/bin/ruff check --fix-only --quiet .
	@$(VENV)/bin/ruff format .

bench: $(BENCH_VENV)/.ready servers ## measure (own environment: .venv-bench)
	@$(BENCH_VENV)/bin/python -m benchmarks $(ARGS)

fuzz: $(VENV)/.ready ## fuzz every parser, a minute each (ARGS="etf --seconds 600")
	@$(VENV)/bin/python -m fuzz $(ARGS)

matrix: $(VENV)/.ready servers ## the tests on other Pythons and servers; renews docs/compatibility.md (ARGS="'Valkey 9.1'")
	@$(VENV)/bin/python -m matrix $(ARGS)

soak: $(VENV)/.ready servers ## all systems under load and faults, five minutes (ARGS="--minutes 60")
	@$(VENV)/bin/python -m soak $(ARGS)

lock: $(VENV)/.ready ## pin the development environment again (ARGS=--upgrade takes the newest versions)
	@$(VENV)/bin/python scripts/lock.py $(ARGS)

advisories: $(VENV)/.ready ## look up known vulnerabilities of the pinned packages
	@$(VENV)/bin/python scripts/advisories.py

clean: ## remove environments, caches and build output
	@rm -rf $(VENV) $(BENCH_VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find src systems demo tests benchmarks soak examples -name __pycache__ -type d -prune -exec rm -rf {} +

servers:
	@scripts/setup.sh servers

$(VENV)/.runs: $(SETUP)
	@scripts/setup.sh venv $(VENV)
	@touch $@

$(VENV)/.ready: $(SETUP)
	@scripts/setup.sh venv $(VENV) dev
	@touch $@ $(VENV)/.runs

$(BENCH_VENV)/.ready: $(SETUP)
	@scripts/setup.sh venv $(BENCH_VENV) bench
	@touch $@
