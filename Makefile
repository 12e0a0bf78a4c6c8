# The one entry point for people; `make help` lists everything. Variables: PRESET=release|dev|tsan, NODES=1..3.
SHELL := /bin/bash
PRESET ?= release
NODES ?= 1
BUILD := build/$(PRESET)
PYTHON := /usr/bin/python3
CLUSTER := e2e/cluster/cluster.sh
CXX_FILES = $(shell git ls-files '*.cc' '*.h')
export STOKER_PYTHON := $(PYTHON)

.DEFAULT_GOAL := help
.PHONY: help deps build programs test test-local laws simulate-world simulate-control mutants e2e e2e-slow attacks controllers demo demo-down cluster-build cluster-up cluster-down images bench scale bench-listing bench-peer-link bench-peers loaders hooks accuracy time-to-accuracy traffic advise importance importance-parts windowed chunks origin-rtt many-nodes three-jobs release lint lint-client format generate soak memory-per-rank \
        check-generated asan tsan clang-tidy fuzzers nightly wheel docs pre-commit clean deps-build deps-test deps-nightly

# $(call venv,NAME,PACKAGE): build/venv-NAME with a package of PyPI, made once.
venv = @[ -e build/venv-$(1)/$(2) ] || { $(PYTHON) -m venv --clear build/venv-$(1) && \
	build/venv-$(1)/bin/pip --quiet install $(2) && touch build/venv-$(1)/$(2); }

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install the Debian packages that build and tests need (as root)
	tools/deps.sh build test

# Every target says what it needs: as root it is installed, otherwise named. Quick and silent when all is there.
deps-build:
	@tools/deps.sh build

deps-test:
	@tools/deps.sh test

deps-nightly:
	@tools/deps.sh nightly

$(BUILD)/build.ninja: CMakePresets.json | deps-build
	cmake --preset $(PRESET)

build: deps-build $(BUILD)/build.ninja ## build operator, sidecar, client core and tests
	cmake --build --preset $(PRESET)

programs: deps-build $(BUILD)/build.ninja ## build only what the images hold and users run
	cmake --build --preset $(PRESET) --target programs

test: deps build ## every test: those without a cluster, then the cluster tests where they can run
	@[ "$$(id -u)" != 0 ] || $(MAKE) --no-print-directory cluster-build images
	tools/run-tests --build $(BUILD) ctest client contract e2e

test-local: deps-test build ## every test that needs no cluster
	tools/run-tests --build $(BUILD) ctest client contract

laws: deps-build $(BUILD)/build.ninja ## simulate what is known in advance and compare, also at random parameters (SEED=1, RANDOM_LAWS=200)
	cmake --build --preset $(PRESET) --target stoker
	$(BUILD)/bin/stoker laws
	$(BUILD)/bin/stoker laws --seed $(or $(SEED),1) --random $(or $(RANDOM_LAWS),200)

simulate-world: deps-build $(BUILD)/build.ninja ## run the simulated world (SEEDS=FIRST-LAST, default 1-100; LOG=1 writes its log; KEEP_GOING=1 runs all seeds)
	cmake --build --preset $(PRESET) --target simulate-world
	$(BUILD)/bin/simulate-world $(or $(SEEDS),1-100) $(if $(LOG),--log) $(if $(KEEP_GOING),--keep-going)

simulate-control: deps-build $(BUILD)/build.ninja ## run the operator's simulated world (SEEDS=FIRST-LAST, default 1-50; LOG=1 writes its log; KEEP_GOING=1 runs all seeds)
	cmake --build --preset $(PRESET) --target simulate-control
	$(BUILD)/bin/simulate-control $(or $(SEEDS),1-50) $(if $(LOG),--log) $(if $(KEEP_GOING),--keep-going)

windowed: deps-test build ## three real jobs on one dataset: what the origin sends, beside never-evict and ODS (about 5 minutes)
	$(PYTHON) bench/windowed/jobs.py --build $(BUILD)

mutants: deps-build deps-test ## plant known bugs one by one; every one must be killed by a test (PATCHES=..., default all; WORLDS=1: by a simulated world)
	tools/mutants $(if $(WORLDS),--worlds) $(PATCHES)

e2e: ## the tests on a real cluster (KUBECONFIG, or one of its own), as in the check at landing; not e2e/attacks
	tools/deps.sh build test cluster
	@$(MAKE) --no-print-directory images
	tools/run-tests --build $(BUILD) e2e

e2e-slow: ## the tests on a real cluster that take more than five minutes each
	tools/deps.sh build test cluster
	@$(MAKE) --no-print-directory images
	STOKER_BUILD=$(CURDIR)/$(BUILD) $(PYTHON) -m pytest -q -p no:cacheprovider -m slow e2e/tests

attacks: ## attack Stoker on a real cluster: the attacks of make e2e, and e2e/attacks (about an hour)
	tools/deps.sh build test cluster
	@$(MAKE) --no-print-directory images
	STOKER_BUILD=$(CURDIR)/$(BUILD) $(PYTHON) -m pytest -v -p no:cacheprovider e2e/tests/test_f_attacks.py e2e/attacks

controllers: ## Stoker beside the real Kueue, JobSet, training-operator and Kubeflow Trainer, built from their modules (30 minutes the first time)
	tools/deps.sh build test cluster
	@$(MAKE) --no-print-directory images
	STOKER_BUILD=$(CURDIR)/$(BUILD) $(PYTHON) -m pytest -v -p no:cacheprovider e2e/controllers

demo: ## train on a real Kubernetes with and without the cache, and see what it was worth
	tools/deps.sh build cluster
	@$(MAKE) --no-print-directory images
	$(PYTHON) e2e/demo/demo.py up

demo-down: ## remove everything that the demo made
	$(PYTHON) e2e/demo/demo.py down

cluster-build: ## build the programs of a Kubernetes for this machine (seven minutes, once)
	tools/deps.sh cluster
	e2e/cluster/build.sh
	e2e/origin/build.sh >/dev/null

cluster-up: cluster-build ## start a real Kubernetes of NODES=1..3 nodes on this machine
	$(CLUSTER) up $(NODES)

cluster-down: ## stop it and leave nothing behind
	$(CLUSTER) down

images: programs ## build the container images (buildah)
	tools/deps.sh cluster
	tools/images.sh

bench: deps-test build ## measure; writes build/bench/results.json and prints the bars
	tools/deps.sh bench
	$(PYTHON) bench/run.py --build $(BUILD)

bench-peer-link: deps-build $(BUILD)/build.ninja ## peers' frames compared with a plain TLS stream, rate and processor time (a minute)
	cmake --build $(BUILD) --target stoker-bench-peer-link
	$(BUILD)/bin/stoker-bench-peer-link

bench-peers: deps-test $(BUILD)/build.ninja ## memcached, Redis, nginx, JuiceFS, rclone, LitData, Mosaic, WebDataset beside Stoker (15 minutes; ROWS="hits capacity images", ROUNDS=5, TURN_SECONDS=0.4, PUBLISH=1 writes docs)
	cmake --build $(BUILD) --target stoker-bench stoker-bench-peers stoker-sidecar stoker_client_python
	bench/peers/install.sh
	$(PYTHON) bench/peers/run.py --build $(BUILD) $(if $(ROWS),--rows $(ROWS)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
		$(if $(TURN_SECONDS),--seconds $(TURN_SECONDS)) $(if $(PUBLISH),--publish)

scale: deps-test $(BUILD)/build.ninja ## the operator with 10,000 jobs, 50,000 pods and 10,000 sidecars beside a fake API server (10 minutes, 4 GB of memory)
	cmake --build $(BUILD) --target stoker-bench-scale stoker-operator
	$(PYTHON) bench/scale/run.py $(BUILD)

soak: ## jobs come and go on a real cluster for MINUTES=60 while programs are killed; fails if anything grows, leaks or sticks
	tools/deps.sh build test cluster
	@$(MAKE) --no-print-directory images
	STOKER_BUILD=$(CURDIR)/$(BUILD) MINUTES=$(or $(MINUTES),60) NODES=2 $(PYTHON) -m pytest -v -s -p no:cacheprovider e2e/soak

memory-per-rank: deps-test build ## memory of a sidecar and 8 ranks with 8 workers each at ten million samples (10 minutes, 6 GB of memory)
	$(PYTHON) bench/memory_per_rank.py --build $(BUILD) --page docs/benchmarks.md

bench-listing: deps-build $(BUILD)/build.ninja ## memory and time from a listing of ten million objects to an open manifest (a minute, 1.2 GB of disk)
	cmake --build $(BUILD) --target stoker-bench-listing
	mkdir -p $(BUILD)/bench-listing
	$(BUILD)/bin/stoker-bench-listing $(BUILD)/bench-listing; status=$$?; rm -rf $(BUILD)/bench-listing; exit $$status

loaders: deps-test build ## unchanged scripts of other libraries read through the S3 endpoint; writes docs/reference (half an hour)
	tools/deps.sh loaders
	tests/loaders/venv.sh loaders
	build/venv-loaders/bin/python tests/loaders/run.py --build $(BUILD) --page docs/reference/loaders.md

hooks: deps-test deps-build $(BUILD)/build.ninja ## WebDataset, Hugging Face datasets, multi-storage-client, Lightning, Accelerate and the HF Trainer with the Python client (from PyPI; 10 minutes)
	tools/deps.sh loaders
	cmake --build $(BUILD) --target stoker_client_python
	tests/loaders/venv.sh loaders
	tests/loaders/venv.sh trainers
	cd tests/loaders/hooks && export STOKER_BUILD=$(CURDIR)/$(BUILD) && \
		$(CURDIR)/build/venv-loaders/bin/python -m pytest -q -p no:cacheprovider test_webdataset.py test_hf_datasets.py && \
		$(CURDIR)/build/venv-trainers/bin/python -m pytest -q -p no:cacheprovider test_msc.py test_trainers.py

traffic: deps-test build ## what the real sidecar reads at the origin under each contract, beside the simulator's figure
	$(PYTHON) bench/traffic.py --build $(BUILD)

advise: deps-test build ## what `stoker advise` predicts for three real programs, beside the bytes that their runs read (a minute)
	$(PYTHON) bench/advise.py --build $(BUILD)

accuracy: build ## train small models under every contract: accuracy, origin bytes (two hours; goes on where it stopped)
	tools/deps.sh test accuracy datasets
	$(PYTHON) bench/accuracy/run.py --build $(BUILD) --seeds-max 20 --page docs/reference/accuracy.md

time-to-accuracy: build ## train from a slow origin under every contract: seconds to an accuracy (hours; resumes); writes its page
	tools/deps.sh test accuracy datasets
	$(PYTHON) bench/accuracy/to_accuracy.py --build $(BUILD) --page docs/reference/time-to-accuracy.md

importance: deps-test build ## two jobs share a node directory by importance: hits against the map of one of them (some minutes)
	$(PYTHON) bench/shared_importance.py --build $(BUILD)

importance-parts: build ## what each part of iCACHE earns, by the simulator (some minutes)
	$(PYTHON) bench/importance_parts.py --build $(BUILD)

chunks: deps-test build ## a cold epoch from objects and from chunks, beside the closed form; writes docs/experiments (5 minutes)
	$(PYTHON) bench/chunks.py --build $(BUILD) --page docs/experiments/chunks.md

origin-rtt: deps-test build ## a cold epoch from an origin 0 to 200 ms away, with and without a sidecar (8 minutes)
	$(PYTHON) bench/origin_rtt.py --build $(BUILD)

many-nodes: deps-test build ## 1 to 3 real and 1 to 64 simulated nodes, with and without peers; writes docs/experiments (12 minutes)
	cmake --build $(BUILD) --target stoker-many-nodes stoker-fake-operator stoker-fake-s3 stoker-pacer
	$(PYTHON) bench/many_nodes.py --build $(BUILD) --page docs/experiments/many-nodes.md

three-jobs: ## three jobs on one pool of a real cluster: planned, evenly split, LRU; writes docs/experiments (15 minutes)
	tools/deps.sh build test cluster accuracy
	@$(MAKE) --no-print-directory images
	$(PYTHON) e2e/experiments/three_jobs/run.py --build $(BUILD) --page docs/experiments/three-jobs.md

wheel: deps-build deps-test ## build the Python client as a wheel into build/wheels
	$(PYTHON) -m venv build/venv-wheel
	build/venv-wheel/bin/pip wheel --no-deps -w build/wheels ./client

release: deps-build $(BUILD)/build.ninja ## the archive of kubectl-stoker and stoker, with completion
	cmake --build --preset $(PRESET) --target kubectl-stoker stoker
	cd $(BUILD) && cpack -B release

lint: deps-test ## formatting, layers, words, scripts, YAML
	tools/tidy
	@clang-format-14 --dry-run --Werror $(CXX_FILES)
	shellcheck $$(git ls-files '*.sh') .ci/run
	yamllint -s crds docs/examples charts/stoker/values.yaml charts/stoker/Chart.yaml

fuzzers: deps-build deps-nightly ## build the libFuzzer targets: build/fuzz/bin/fuzz_*
	cmake --preset fuzz && cmake --build --preset fuzz

clang-tidy: deps-build deps-test deps-nightly ## the static analyser over all sources (an hour; SINCE=COMMIT: over the changed ones)
	cmake --preset fuzz && cmake --build --preset fuzz --target stoker_proto_control stoker_proto_node stoker_proto_csi stoker_proto_kubelet stoker_test_headers
	git $(if $(SINCE),diff --name-only --diff-filter=d $(SINCE) --,ls-files) '*.cc' | xargs -P 2 -n 4 clang-tidy-16 -p build/fuzz --quiet --extra-arg=-Wno-unknown-warning-option

nightly: deps-build deps-test deps-nightly ## sanitizers, analyser, planted bugs, accuracy, fuzzers, slow cluster tests (seven hours); writes docs/quality.md
	tools/nightly $(STEPS)

lint-client: deps-test ## ruff and mypy --strict over the Python client (from PyPI the first time)
	$(call venv,ruff,ruff==0.13.0)
	$(call venv,mypy,mypy==1.18.2)
	build/venv-ruff/bin/ruff check --config client/pyproject.toml client/src
	cd client && ../build/venv-mypy/bin/mypy --python-executable $(PYTHON)

format: deps-test ## format the C++ sources
	@clang-format-14 -i $(CXX_FILES)

generate: deps-test ## make the generated reference pages again
	tools/generate

check-generated: deps-test ## fail when a generated page is out of date
	tools/generate --check

docs: deps-test ## all pages as a site with search (build/site/html); a broken link fails it
	$(call venv,docs,mkdocs-material==9.8.1)
	NO_MKDOCS_2_WARNING=1 build/venv-docs/bin/python tools/build_site.py

pre-commit: deps-test ## run the hooks of .pre-commit-config.yaml over all files; installs no hook
	$(call venv,pre-commit,pre-commit==4.3.0)
	build/venv-pre-commit/bin/pre-commit run --all-files

asan: deps-build deps-test ## the C++ tests under the address and undefined-behaviour sanitizers (TARGETS="test_...": only these)
	cmake --preset dev && cmake --build --preset dev $(if $(TARGETS),--target $(TARGETS))
	tools/run-tests --build build/dev $(addprefix --only ,$(TARGETS)) ctest

tsan: deps-build deps-test ## the C++ tests under the thread sanitizer (TARGETS="test_...": only these)
	cmake --preset tsan && cmake --build --preset tsan $(if $(TARGETS),--target $(TARGETS))
	tools/run-tests --build build/tsan $(addprefix --only ,$(TARGETS)) ctest

clean: ## remove what was built here
	rm -rf build
