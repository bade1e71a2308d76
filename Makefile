# Targets of this project. `make` or `make help` lists them.
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
OLDEST_KUBERNETES := 1.35
SPARKS := 3.5 4.0 4.1 4.2 4.3
SPARK ?= 4.3
REPORTS := build/reports
# Some machines forbid Python to keep compiled modules; then each of the thousands of processes that the tests start compiles them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

.venv/installed: requirements/dev.txt pyproject.toml lab/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed: set PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x .tools/bin/uv || { echo "==> uv $(UV_VERSION)"; $(PYTHON) -m venv .tools && .tools/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION); }
	@echo "==> Python packages into .venv"
	@test -x $(BIN)/python || .tools/bin/uv venv --quiet --python $(PYTHON) .venv
	@.tools/bin/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements/dev.txt
	@.tools/bin/uv pip install --quiet --python $(BIN)/python --no-deps --editable . --editable lab
	@touch $@

.PHONY: setup
setup: .venv/installed ## Install uv and the Python packages into this folder

.PHONY: lock
lock: .venv/installed ## Update the hashed requirement files from pyproject.toml
	.tools/bin/uv pip compile -q --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url --all-extras --group dev --no-emit-package boathouse pyproject.toml lab/pyproject.toml -o requirements/dev.txt
	.tools/bin/uv pip compile -q --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url --extra operator pyproject.toml -o requirements/operator.txt
	.tools/bin/uv pip compile -q --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url pyproject.toml -o requirements/task.txt
	.tools/bin/uv pip compile -q --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url --group build -o requirements/build.txt
	.tools/bin/uv pip compile -q --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url --group release -o requirements/release.txt
	for version in $(SPARKS); do .tools/bin/uv pip compile -q --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url --group spark-$$version -o images/spark/versions/$$version/requirements.txt; done

##@ Checks
.PHONY: lint
lint: setup build/reports ## Format check, lint, types and import contracts
	@echo "==> ruff"; $(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@echo "==> mypy"; $(BIN)/mypy
	@echo "==> import-linter"; $(BIN)/lint-imports --no-logo --verbose >build/lint-imports.log 2>&1 || { cat build/lint-imports.log; exit 1; }

.PHONY: format
format: setup ## Format the code and apply the safe fixes
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

# Wire tests wait for timers half of the time: two processes keep a core busy.
TWICE := $(shell echo $$(( $$(nproc) * 2 )))

.PHONY: test-unit
test-unit: setup build/reports ## Unit, property and wire tests (no cluster; five minutes on two cores)
	@echo "==> unit, property and wire tests"; $(BIN)/pytest tests/unit tests/wire tests/kinds lab/tests -q -n $(TWICE) -m "not long" --results=build/reports/unit.jsonl

.PHONY: test-changed
test-changed: setup ## Run the tests that your changes concern, at most five minutes (BASE=REVISION: since then; needs `make record-coverage`)
	@$(BIN)/python -m tests.coverage changed $(if $(BASE),--base $(BASE))

.PHONY: record-coverage
record-coverage: setup build/reports ## Record which test executes which line, for new and changed tests (TESTS="tests/contract tests/faults": theirs)
	@$(BIN)/python -m tests.coverage record $(TESTS)

.PHONY: test-mutations
test-mutations: record-coverage ## Plant faults in six packages and see that tests fail (PACKAGE=scheduling: in one; an hour at first, then it goes on)
	@echo "==> planted faults"; $(BIN)/python -m tests.mutations $(PACKAGE)

# Three end-to-end tests at a time on one cluster; those that need the whole cluster run last, one after the other.
SIDE_BY_SIDE := -n 3 --dist loadgroup --no-loadscope-reorder

.PHONY: test-contract
test-contract: setup build/reports ## Contract and fault tests on a real API server (built once, then cached)
	@echo "==> contract tests"; $(BIN)/pytest tests/contract/chart tests/faults tests/contract -q -n 4 --dist loadgroup --no-loadscope-reorder -m "not long" --timeout=600 --results=$(REPORTS)/contract.jsonl

.PHONY: test-hostile-short
test-hostile-short: setup build/reports ## A tenant's attacks on a real API server, in small sizes (eight minutes)
	@echo "==> attacks"; $(BIN)/pytest tests/hostile -q -n 3 --dist loadgroup --no-loadscope-reorder -m "not long" --timeout=300 --results=build/reports/hostile-short.jsonl

.PHONY: test-hostile
test-hostile: setup build/reports ## All attacks in full size, with a table of the delay of another namespace's job under each
	@echo "==> attacks"; $(BIN)/pytest tests/hostile -v --timeout=900 --results=build/reports/hostile.jsonl

.PHONY: test-e2e
test-e2e: setup build/reports ## End-to-end tests on a real cluster (PROVIDER=local|kind|existing)
	@echo "==> end-to-end tests"; $(BIN)/pytest e2e/tests -v $(SIDE_BY_SIDE) -m "not long" --timeout=1800 --results=$(REPORTS)/e2e.jsonl

.PHONY: test-e2e-kind
test-e2e-kind: setup build/reports ## The short form of the end-to-end tests on kind (three to six minutes), with Docker or as root on Debian
	@echo "==> end-to-end tests on kind, short form"
	@PROVIDER=kind TEST_CLUSTER=boathouse-kind $(BIN)/pytest e2e/tests -v -m short --timeout=1800 --results=build/reports/e2e-kind.jsonl

.PHONY: test-e2e-faults
test-e2e-faults: setup build/reports ## Kill the operator at 8 points of an MRJob and at each write of a SparkApp, and pause it past its Lease (local or kind)
	@$(BIN)/pytest e2e/tests/test_faults.py e2e/tests/test_spark_faults.py -v --timeout=1200 --results=build/reports/e2e-faults.jsonl

.PHONY: test-e2e-hadoop
test-e2e-hadoop: setup build/reports ## Hadoop clusters that grow, share, are harmed and are read, on a cluster of four nodes
	@$(BIN)/pytest e2e/tests/hadoop -v -s --resume --timeout=1200 --results=build/reports/e2e-hadoop.jsonl

.PHONY: test-oldest-kubernetes
test-oldest-kubernetes: ## Contract and end-to-end tests on Kubernetes 1.35, the chart's minimum (local provider)
	@$(MAKE) --no-print-directory --keep-going test-contract test-e2e PROVIDER=local KUBERNETES=$(OLDEST_KUBERNETES) REPORTS=$(REPORTS)/kubernetes-$(OLDEST_KUBERNETES)

.PHONY: test-rights
test-rights: setup ## Compare the rights that the chart grants with those that the previous tests used
	@echo "==> rights"; $(BIN)/python -m boathouse_e2e.rights

.PHONY: forget-rights
forget-rights:
	@rm -rf build/reports/rights

.PHONY: test
test: forget-rights lint test-unit ## Everything: lint, unit, property, wire, contract, attack and end-to-end tests, the last in short on kind too
	@$(MAKE) --no-print-directory test-contract
	@$(MAKE) --no-print-directory test-hostile-short
	@$(MAKE) --no-print-directory test-e2e
	@$(MAKE) --no-print-directory test-e2e-kind test-rights

##@ Long tests: each target ends within an hour on two cores, and leaves out what has passed on the same sources
LONG := -m long --resume --timeout=1200

.PHONY: test-search
test-search: setup build/reports ## Property tests with examples that differ from run to run (`make test` has the same each time)
	@$(BIN)/pytest tests/unit tests/wire tests/kinds lab/tests -q -n $(TWICE) -m "hypothesis and not long" --hypothesis-profile=search --timeout=1200 --results=build/reports/search.jsonl

.PHONY: test-faults
test-faults: setup build/reports ## Kill the operator at each failpoint of jobs and applications
	@$(BIN)/pytest tests/faults/test_failpoints.py tests/faults/test_rare_failpoints.py tests/faults/test_outputs.py tests/faults/test_sparkapps.py -q -n 2 $(LONG) --results=build/reports/faults.jsonl

.PHONY: test-faults-at-random
test-faults-at-random: setup build/reports ## Kill, pause and confuse the operator at random times; compare with kube-scheduler
	@$(BIN)/pytest tests/wire tests/contract --ignore=tests/wire/test_soak.py tests/faults/test_random_kills.py tests/faults/test_suspension.py tests/faults/test_two_leaders.py tests/faults/test_versions.py tests/faults/test_service_accounts.py -q -n 2 $(LONG) --results=build/reports/faults-at-random.jsonl

.PHONY: soak
soak: setup ## A million pod events and 20,000 objects of each kind: memory and a census of the operator, which must not grow (SOAK="--events 100000 --objects 2000")
	@$(BIN)/python -m tests.soak $(SOAK)

.PHONY: test-soak
test-soak: setup build/reports ## The soak as a test, which is left out if it has passed on the same sources
	@$(BIN)/pytest tests/wire/test_soak.py -q -m long --resume --timeout=5400 --results=build/reports/soak.jsonl

.PHONY: test-faults-clusters
test-faults-clusters: setup build/reports ## Kill the operator at each failpoint of Hadoop clusters
	@$(BIN)/pytest tests/faults/test_mrclusters.py -q -n 4 $(LONG) --results=build/reports/faults-clusters.jsonl

.PHONY: test-faults-clusters-at-random
test-faults-clusters-at-random: setup build/reports ## Kill the operator of Hadoop clusters at random times
	@$(BIN)/pytest tests/faults/test_mrcluster_leaders.py tests/faults/test_mrcluster_random_kills.py -q -n 2 $(LONG) --results=build/reports/faults-clusters-at-random.jsonl

.PHONY: test-hostile-long
test-hostile-long: setup build/reports ## Attacks in full size that the short form leaves out
	@$(BIN)/pytest tests/hostile -q $(LONG) --results=build/reports/hostile-long.jsonl

.PHONY: test-e2e-long
test-e2e-long: setup build/reports ## End-to-end tests that take minutes each
	@$(BIN)/pytest e2e/tests -v --ignore=e2e/tests/hadoop --ignore=e2e/tests/scaling $(LONG) --results=build/reports/e2e-long.jsonl

.PHONY: test-autoscaling
test-autoscaling: setup build/reports ## Real Karpenter with fake nodes, then real nodes that come and go, for jobs of each kind (half an hour)
	@$(BIN)/pytest tests/autoscaling -v $(LONG) --results=build/reports/autoscaling.jsonl
	@PROVIDER=local $(BIN)/pytest e2e/tests/scaling -v $(LONG) --results=build/reports/e2e-scaling.jsonl

.PHONY: first-hour
first-hour: setup ## Follow docs/getting-started.md on a new kind cluster, then on one that grows from zero nodes, and write the times into docs
	@$(BIN)/python -m e2e.tests.first_hour
	@$(BIN)/python -m e2e.tests.first_hour --from-zero

.PHONY: test-all
test-all: test ## Everything of `make test`, then the tests on the oldest Kubernetes, the long tests and planted faults (some hours; goes on where it stopped)
	@$(MAKE) --no-print-directory test-oldest-kubernetes
	@$(MAKE) --no-print-directory --keep-going test-search test-faults test-faults-at-random test-faults-clusters test-faults-clusters-at-random test-hostile-long test-soak test-e2e-long test-e2e-hadoop test-autoscaling first-hour test-mutations

build/reports:
	@mkdir -p $@

.PHONY: manifests
manifests: setup ## Write the CRDs from the models, under crds/ and into the chart, and the pages of commands and metrics
	$(BIN)/python -m boathouse_e2e.crd_files
	$(BIN)/python -m boathouse_e2e.commands_page
	$(BIN)/python -m boathouse_e2e.metrics_page

.PHONY: pyspark
pyspark: setup ## Install pyspark into build/pyspark, for recordings and benchmarks (SPARK=3.5: of another version; downloads 450 MB)
	@test -x build/pyspark/bin/python || .tools/bin/uv venv --quiet --python $(BIN)/python build/pyspark
	.tools/bin/uv pip sync --quiet --python build/pyspark/bin/python --require-hashes images/spark/versions/$(SPARK)/requirements.txt

.PHONY: record-spark
record-spark: pyspark ## Record what Spark creates of submissions that have changed, and its keys (Java 17; SPARK=3.5: another version's)
	$(BIN)/python -m tests.spark.record --pyspark build/pyspark

.PHONY: record-streaming
record-streaming: setup ## Record anew what real Hadoop Streaming 3.4.2 writes for 500 jobs (Java 17, Maven; some ten minutes)
	$(BIN)/python -m tests.streaming.record all

.PHONY: record-command-lines
record-command-lines: setup pyspark ## Record how Hadoop's and Spark's own parsers read generated command lines (Java 17, Maven; a minute)
	$(BIN)/python -m tests.command_lines.record --pyspark build/pyspark

.PHONY: pages
pages: setup ## Write the figures of docs/policies/figures into the policies' pages (STUDIES="fspy koala": run these in full first)
	$(BIN)/python -m boathouse_lab.reproduce.pages $(if $(STUDIES),--run $(STUDIES))

##@ Cluster
E2E = $(BIN)/python -m boathouse_e2e
CLUSTER_FLAGS = --provider $(PROVIDER) --name $(CLUSTER) $(if $(CONTEXT),--context $(CONTEXT))

.PHONY: cluster-up
cluster-up: setup ## Start a cluster (PROVIDER=auto|local|kind|existing NODES=2 KWOK_NODES=0 CLUSTER=boathouse CONTEXT= KUBERNETES=1.36|1.35)
	@$(E2E) up $(CLUSTER_FLAGS) --nodes $(NODES) --kwok-nodes $(KWOK_NODES)

.PHONY: cluster-down
cluster-down: setup ## Stop the cluster and remove its files
	@$(E2E) down $(CLUSTER_FLAGS)

.PHONY: cluster-status
cluster-status: setup ## Show the cluster's processes, nodes and logs
	@$(E2E) status $(CLUSTER_FLAGS)

.PHONY: cluster-kubeconfig
cluster-kubeconfig: setup ## Print the path of the cluster's kubeconfig: export KUBECONFIG=$$(make -s cluster-kubeconfig)
	@$(E2E) kubeconfig $(CLUSTER_FLAGS)

.PHONY: images
images: setup ## Build the images of the demo and the tests if their inputs changed (about five minutes on two cores, once)
	@$(E2E) images

.PHONY: images-load
images-load: setup ## Load the images into every node of the cluster
	@$(E2E) load-images $(CLUSTER_FLAGS)

.PHONY: kind-node-image
kind-node-image: setup ## Build the image of kind's nodes, for machines that reach no image registry (two minutes, once)
	@$(E2E) kind-node-image

.PHONY: tools
tools: setup ## Build the cluster's binaries into the cache (about 12 minutes on two cores, once)
	@$(E2E) tools

##@ Demo
.PHONY: demo
demo: setup ## Count the words of 200 MB of real text on a real cluster, checked and timed (KEEP=0: stop the cluster at the end)
	@$(BIN)/python -m boathouse_e2e.demo $(CLUSTER_FLAGS) --nodes $(NODES)

##@ Release (docs/releasing.md): the files are below build/release
RELEASE = $(BIN)/python -m boathouse_e2e.release
TWINE = build/release-tools/bin/twine

build/release-tools/installed: requirements/release.txt .venv/installed
	@.tools/bin/uv venv --quiet --clear --python $(BIN)/python build/release-tools
	@.tools/bin/uv pip sync --quiet --require-hashes --python build/release-tools/bin/python requirements/release.txt
	@touch $@

.PHONY: release
release: ## Make and publish a release from files of all architectures (REGISTRY=ghcr.io/OWNER TAG=v0.2.0; DRY_RUN=1: this machine's, published nowhere)
	@$(MAKE) --no-print-directory release-check release-arm64
	@$(MAKE) --no-print-directory $(if $(DRY_RUN),release-images) release-packages REGISTRY=$(or $(REGISTRY),$(if $(DRY_RUN),registry.example.org))
	@$(MAKE) --no-print-directory release-publish $(if $(DRY_RUN),,release-pypi)

.PHONY: release-check
release-check: setup ## Check that version, tag, chart and changelog agree, and lint the workflows (TAG=v0.2.0)
	@echo "==> version and workflows"; $(RELEASE) check $(TAG)

.PHONY: release-arm64
release-arm64: setup ## Check that all locked packages of operator and tasks have wheels for arm64
	@echo "==> wheels for arm64"
	@for lock in task operator; do .tools/bin/uv pip install --quiet --dry-run --target build/arm64 --python-platform aarch64-manylinux_2_28 --python-version 3.11 --only-binary :all: --require-hashes -r requirements/$$lock.txt; done

.PHONY: release-images
release-images: setup ## Build the published images for this machine's architecture, each with its SBOM
	@echo "==> images"; $(RELEASE) images

.PHONY: release-packages
release-packages: setup build/release-tools/installed ## Build chart, wheels, sdists and notes (REGISTRY: where the chart's images will be)
	@echo "==> chart, Python packages and notes"; rm -rf build/release/python
	@.tools/bin/uv build --quiet --out-dir build/release/python --build-constraints requirements/build.txt --require-hashes
	@.tools/bin/uv build --quiet --out-dir build/release/python --build-constraints requirements/build.txt --require-hashes lab
	@$(TWINE) check --strict build/release/python/*.whl build/release/python/*.tar.gz
	@$(RELEASE) chart $(REGISTRY)
	@$(RELEASE) notes

.PHONY: release-publish
release-publish: setup ## Push images and chart, sign and attest them, and verify that (REGISTRY=ghcr.io/OWNER or DRY_RUN=1)
	@echo "==> registry"; $(RELEASE) publish $(if $(DRY_RUN),--dry-run,$(REGISTRY))

.PHONY: release-pypi
release-pypi: setup build/release-tools/installed ## Upload wheels and sdists to PyPI, as the hosted workflow
	@echo "==> PyPI"; $(TWINE) upload --non-interactive --skip-existing build/release/python/*.whl build/release/python/*.tar.gz
