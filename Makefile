# Reinstalls only when one of these changed.
SETUP := pyproject.toml $(wildcard systems/*/pyproject.toml) demo/pyproject.toml scripts/setup.sh requirements-dev.txt \
    tests/foreign/bullmq/package-lock.json clients/typescript/package-lock.json
VENV := .venv
# redis-om pulls in types-redis, which hides redis-py's own types from mypy: benchmarks live apart.
BENCH_VENV := .venv-bench
# Programs of the catalogue that cannot be installed beside the tests.
FOREIGN_VENV := .venv-foreign
# Extra arguments for pytest: make test ARGS="-k expired"
ARGS ?=
# Most tests wait for a server, so four processes share the work, a file at a time, in the order of conftest.py.
# With a debugger: make test TESTERS=0
TESTERS ?= 4
PYTEST := pytest --numprocesses $(TESTERS) --dist loadfile --no-loadscope-reorder
COVERAGE := build/coverage.json

# The installed pyright and its own node decide: no advice about newer versions, no node of the machine.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PYRIGHT_PYTHON_GLOBAL_NODE := 0

.DEFAULT_GOAL := help
.PHONY: help run test coverage lint mypy pyright imports check format docs foreign bench peers fuzz matrix soak pictures lock advisories dist sbom clean servers

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
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target mypy pyright imports
ifeq ($(CI),true)
	@$(MAKE) --no-print-directory advisories
endif

mypy pyright: $(VENV)/.ready
	@$(VENV)/bin/$@

imports: $(VENV)/.ready
	@$(VENV)/bin/lint-imports --no-logo

check: ## what CI runs: lint, then test
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory test

format: $(VENV)/.ready ## rewrite the code in the house style
	@$(VENV)/bin/ruff check --fix-only --quiet .
	@$(VENV)/bin/ruff format .

docs: $(VENV)/.ready ## build the documentation site into build/site, without a warning
	@$(VENV)/bin/python -m website

foreign: $(VENV)/.ready $(FOREIGN_VENV)/.ready servers ## all programs of the catalogue at length, with their figures (own environments: .venv-foreign)
	@CI=true $(VENV)/bin/python -m pytest tests/foreign --at-length $(ARGS)

bench: $(BENCH_VENV)/.ready servers ## measure beside other clients (own environment: .venv-bench; ARGS=--quick, ARGS=--page renews docs/benchmarks.md)
	@$(BENCH_VENV)/bin/python -m benchmarks $(ARGS)

peers: $(BENCH_VENV)/.ready servers ## the tasks of docs/compare with every client (ARGS="walrus glide")
	@$(BENCH_VENV)/bin/python -m benchmarks.peers $(ARGS)

fuzz: $(VENV)/.ready ## fuzz every parser, a minute each (ARGS="etf --seconds 600")
	@$(VENV)/bin/python -m fuzz $(ARGS)

matrix: $(VENV)/.ready servers ## the tests on other Pythons and servers; renews docs/compatibility.md (ARGS="'Valkey 9.1'")
	@$(VENV)/bin/python -m matrix $(ARGS)

soak: $(VENV)/.ready servers ## all systems under load and faults, five minutes (ARGS="--minutes 60")
	@$(VENV)/bin/python -m soak $(ARGS)

pictures: $(VENV)/.ready servers ## make the pictures in docs/images again: explorer, terminal, diagrams
	@$(VENV)/bin/python scripts/terminal.py
	@PYTHONPATH=. $(VENV)/bin/python scripts/flowcharts.py
	@PYTHONPATH=tests:. $(VENV)/bin/python scripts/screenshots.py

lock: $(VENV)/.ready ## pin the development environment again (ARGS=--upgrade takes the newest versions)
	@$(VENV)/bin/python scripts/lock.py $(ARGS)

advisories: $(VENV)/.ready ## look up known vulnerabilities of the pinned packages
	@$(VENV)/bin/python scripts/advisories.py

dist: $(VENV)/.ready ## build the wheel and the source distribution of every package into dist, and check them
	@rm -rf dist
	@$(VENV)/bin/python -m scripts.distributions

sbom: dist ## the same, with a bill of materials (CycloneDX) of what an installation has
	@$(VENV)/bin/python -m scripts.sbom

clean: ## remove environments, caches and build output
	@rm -rf $(VENV) $(BENCH_VENV) $(FOREIGN_VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find src systems demo tests benchmarks soak examples -name __pycache__ -type d -prune -exec rm -rf {} +

servers:
	@scripts/setup.sh servers

$(VENV)/.runs: $(SETUP)
	@scripts/setup.sh venv $(VENV)
	@touch $@

$(VENV)/.ready: $(SETUP)
	@scripts/setup.sh venv $(VENV) dev
	@touch $@ $(VENV)/.runs

$(FOREIGN_VENV)/.ready: scripts/setup.sh $(wildcard tests/foreign/requirements/*.txt)
	@scripts/setup.sh foreign $(FOREIGN_VENV)
	@touch $@

$(BENCH_VENV)/.ready: $(SETUP)
	@scripts/setup.sh venv $(BENCH_VENV) bench
	@touch $@
