# kvnode: `make help` tells what there is to do.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# A Python of 3.11 or newer; `make PYTHON=...` takes another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMPS := build/stamps
GUEST := build/guest
REFERENCE ?= ../shared/parity
PYTEST := $(BIN)/python -m pytest
# All tests run in as many processes; much of their time is waiting for guests and clusters.
JOBS ?= 2
SHARED_OUT = $(if $(filter-out 1,$(JOBS)),-n $(JOBS))
# Integration tests and the demo need root.
ROOT := $(shell test "$$(id -u)" = 0 || echo "sudo env PYTHONDONTWRITEBYTECODE=1")

# A set-up step is done when the stamp of its inputs' content is there, whatever their times.
key = $(shell { cat /dev/null $(1); echo $(2); } | sha256sum | cut -c1-16)
NATIVE_SOURCES := setup.py $(sort $(wildcard kvnode/_fast/*.pyx kvnode/_fast/*.pxd kvnode/_fast/core/*))
VENV_STAMP := $(VENV)/installed-$(call key,pyproject.toml,$(PYTHON) $(shell $(PYTHON) -V 2>&1) $(CURDIR))
NATIVE_STAMP := $(STAMPS)/native-$(call key,$(NATIVE_SOURCES) pyproject.toml,$(CURDIR))
GUEST_STAMP := $(STAMPS)/guest-$(call key,$(sort $(wildcard tools/guest/*.py tools/guest/files/*)))

say = @printf '\033[1m==> %s\033[0m\n' "$(1)" >&2

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- set-up -------------------------------------------------------------------------------------------

.PHONY: setup
setup: packages $(NATIVE_STAMP) $(GUEST_STAMP) build/container-disk ## Install all that is missing: Debian packages, virtual environment, native core, demo guest

.PHONY: packages
packages: ## Install the Debian packages that are missing (root or sudo)
	@tools/setup/debian.sh

.PHONY: build
build: $(NATIVE_STAMP) build/container-disk ## Build the native core into the tree, and container-disk into build

# It runs inside users' images, which hold nothing else.
build/container-disk: native/container-disk/container-disk.c
	mkdir -p build
	$(CC) -std=c11 -D_GNU_SOURCE -Os -Wall -Wextra -Werror -static -ffunction-sections -Wl,--gc-sections -s -o $@ $<

$(VENV_STAMP): | packages
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 or newer is needed (make PYTHON=...)" >&2; exit 1; }
	$(call say,virtual environment in $(VENV) with $(PYTHON))
	test -x $(BIN)/python && $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip setuptools 'Cython>=3.1'
	$(call say,the project and its development tools (a minute or two))
	$(BIN)/python -m pip install --no-build-isolation --progress-bar off --editable '.[dev]' | grep -v 'already satisfied' || exit $${PIPESTATUS[0]}
	rm -f $(VENV)/installed-*
	touch $@

$(NATIVE_STAMP): $(VENV_STAMP) | packages
	$(call say,native core)
	$(BIN)/python setup.py --quiet build_ext --inplace
	mkdir -p $(STAMPS) && rm -f $(STAMPS)/native-*
	touch $@

$(GUEST_STAMP): | packages
	$(call say,demo guest (Debian's cloud kernel and busybox))
	$(PYTHON) -m tools.guest --out $(GUEST)
	mkdir -p $(STAMPS) && rm -f $(STAMPS)/guest-*
	touch $@

.PHONY: guest
guest: $(GUEST_STAMP) ## Build the demo guest into build/guest

# --- run ----------------------------------------------------------------------------------------------

.PHONY: demo
demo: setup ## Boot examples/vmi-demo.yaml to its "up" message, report its memory, shut it down
	@$(ROOT) tools/demo.sh $(BIN)/kvnode $(GUEST)

# --- a real Kubernetes --------------------------------------------------------------------------------

NODES ?= 2
CLUSTER ?= main

.PHONY: demo-cluster
demo-cluster: $(VENV_STAMP) ## Bring up a Kubernetes of two nodes with kvnode in it, run a VM there, take all away (root or sudo; KEEP=1 leaves it)
	@$(ROOT) $(BIN)/python -m tools.democluster $(if $(filter-out 0,$(KEEP)),--keep)

.PHONY: cluster
cluster: $(VENV_STAMP) ## Bring up a real Kubernetes on this machine (root or sudo; built the first time; NODES=0: the control plane alone; CLUSTER=name)
	@$(ROOT) $(BIN)/python -m tests.cluster up $(CLUSTER) --if-absent --nodes $(NODES)

.PHONY: cluster-down
cluster-down: $(VENV_STAMP) ## Take it away without a trace
	@$(ROOT) $(BIN)/python -m tests.cluster down $(CLUSTER) --if-present

.PHONY: images
images: packages ## Build the container images of launcher, agent, controller, webhook and demo guest (root or sudo; ARGS=... are the tool's)
	@$(ROOT) $(PYTHON) -m tools.images $(ARGS)

.PHONY: cluster-deploy
cluster-deploy: cluster ## Import the images into the cluster's nodes and run webhooks, controllers and agents there
	@$(ROOT) $(BIN)/python -m tests.cluster deploy $(CLUSTER)

# --- check --------------------------------------------------------------------------------------------

.PHONY: test
test: setup ## Set up and run every test: unit and integration (root or sudo; JOBS=2 test processes, ARGS=... are pytest's)
ifeq ($(ROOT),)
	$(PYTEST) $(SHARED_OUT) $(ARGS)
else
	$(PYTEST) $(SHARED_OUT) -m "not integration" $(ARGS)
	$(ROOT) $(PYTEST) -p no:cacheprovider $(SHARED_OUT) -m integration $(ARGS)
endif

.PHONY: test-unit
test-unit: $(NATIVE_STAMP) ## Run the fast tests, those that one edits against (ARGS=... are pytest's)
	$(PYTEST) -m "not integration and not cluster" $(ARGS)

.PHONY: test-integration
test-integration: setup ## Run the tests that boot guests under libvirt (root or sudo; ARGS=... are pytest's)
	$(ROOT) $(PYTEST) -p no:cacheprovider -m integration $(ARGS)

.PHONY: test-cluster
test-cluster: setup ## Run the tests against a real API server (ARGS=... are pytest's)
	$(PYTEST) -m "cluster and not integration" $(ARGS)

.PHONY: test-fresh
test-fresh: ## Run `make demo` and `make test` in fresh Debian 12 and 13 roots from a clean clone (root; SUITES=... picks)
	tools/fresh/run.sh $(or $(SUITES),bookworm trixie)

.PHONY: lint
lint: $(NATIVE_STAMP) typecheck ## Check style, types, Cython and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cython-lint kvnode  # it calls pycodestyle by name
	$(BIN)/lint-imports --no-cache

.PHONY: typecheck
typecheck: $(NATIVE_STAMP) ## Check types alone
	$(BIN)/mypy
	$(BIN)/mypy -p tools
	$(BIN)/python -m mypy.stubtest kvnode._fast.domain

.PHONY: format
format: $(VENV_STAMP) ## Format the Python sources
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

.PHONY: parity
parity: $(NATIVE_STAMP) ## Score against the whole reference set (REFERENCE=DIR), not below tests/parity_floor.json
	$(BIN)/python -m tools.parity --reference $(REFERENCE)

.PHONY: reference
reference: $(NATIVE_STAMP) ## Run the reference's decisions and wire format over the daemons' code (ARGS=groups; REFERENCE=DIR)
	$(BIN)/python -m tests.reference --dir $(REFERENCE) $(ARGS)

.PHONY: parity-raise
parity-raise: $(NATIVE_STAMP) ## The same, and raise the floor to the scores reached
	$(BIN)/python -m tools.parity --reference $(REFERENCE) --raise

.PHONY: bench
bench: $(NATIVE_STAMP) ## Measure the converter's speed and write docs/performance.md
	mkdir -p build/bench
	$(PYTEST) -q bench --benchmark-only --benchmark-columns=min,median,rounds --benchmark-json=build/bench/times.json
	REFERENCE=$(abspath $(REFERENCE)) $(BIN)/python -m bench.report

.PHONY: bench-agent
bench-agent: $(NATIVE_STAMP) ## Measure the agent with 200 VMIs on its node, into docs/performance.md (root or sudo; ARGS=...)
	$(ROOT) $(BIN)/python -m bench.agent_load --write $(ARGS)

.PHONY: bench-controller
bench-controller: $(NATIVE_STAMP) ## Measure the controllers with 100, 300 and 1,000 VMs, into docs/performance.md (ARGS=...)
	$(BIN)/python -m bench.controller_load --write $(ARGS)

.PHONY: fuzz
SECONDS ?= 60
fuzz: $(VENV_STAMP) ## Fuzz the native core under the sanitizers (SECONDS=60; guided where there is clang)
	$(BIN)/python -m tools.fuzz --seconds $(SECONDS)

.PHONY: wheel
wheel: $(VENV_STAMP) ## Build one wheel, have auditwheel repair it, run the library's tests with it alone
	tools/wheel/build.sh $(abspath $(BIN)/python)

.PHONY: clean
clean: ## Remove what was built; the environment and the caches stay
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find kvnode -name '*.so' -delete
	find kvnode tools tests -name __pycache__ -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## Remove the virtual environment and the demo guest's cache as well
	rm -rf $(VENV) "$${XDG_CACHE_HOME:-$$HOME/.cache}/kvnode/guest"
