# valora: `make demo` and `make test` do everything on a fresh Debian 12; `make help` lists the rest.
BUILD ?= build
JOBS ?= $(shell nproc)
PYTHON ?=
PORT ?= 8000
ONESHOT ?=
FUSE ?=
LINT_FLAGS ?=
PREFIX ?= /usr/local
DESTDIR ?=
RAY_VENV ?= .venv-ray
# ON: the sources of a library are compiled together, so a whole build takes half the time. OFF: file by file, for
# work on the code, as the presets of CMakePresets.json have it. A build folder keeps what it was made with.
UNITY ?= ON
PY := $(if $(PYTHON),$(PYTHON),.venv/bin/python)

.DEFAULT_GOAL := help
.PHONY: help setup setup-tests setup-dist configure configure-tests build bench serve demo demo-adapters test lint format conformance fuzz \
  setup-ray serve-ray test-ray install uninstall dist test-dist clean

help:
	@echo "make demo            install what is missing, build, serve the demo model, ask it, keep serving (ONESHOT=1 ends)"
	@echo "make test            install what is missing, build, run the linters and the tests"
	@echo "make lint            the linters alone; LINT_FLAGS=--all takes the tests and the sources with libtorch, too (minutes)"
	@echo "make format          clang-format over all C++ sources, ruff's safe fixes over all Python"
	@echo "make conformance     the projections on all of Punica's and vLLM's test grids, all cases of the CUDA kernels, emulated,"
	@echo "                     these compiled for all GPUs if there is nvcc, the build for ARM under qemu, and all comparisons"
	@echo "                     with transformers and PEFT"
	@echo "                     (make test takes a sample of each)"
	@echo "make fuzz            fuzz every parser, FUZZ_SECONDS=60 each, FUZZ_JOBS=1 at a time (fuzz/README.md)"
	@echo "make build           build/valora; PYTHON=/path/python builds against that interpreter's torch (CUDA, say);"
	@echo "                     UNITY=OFF compiles file by file, for work on the code"
	@echo "make bench           build/valora-bench, too, which valora bench runs: measurements and comparisons"
	@echo "make install         build, then install to PREFIX=/usr/local (DESTDIR=… before it), with valora-bench if it was built;"
	@echo "                     make uninstall removes it"
	@echo "make dist            the artefacts of a release in dist/: tar.xz, wheel, Debian package, image; DIST=\"tar wheel\" makes these alone"
	@echo "make test-dist       as root: tries each artefact in a bare Debian, and the program on emulated older CPUs"
	@echo "make serve           serve the demo model and its adapters on 127.0.0.1:8000; PORT=… takes another port, for make demo too"
	@echo "make serve-ray       serve them over Ray Serve on port 8000: RAY_REPLICAS=2 servers behind one endpoint (python/valora_serve)"
	@echo "make test-ray        the tests of python/valora_serve, with Ray in a virtual environment of its own, RAY_VENV=.venv-ray"
	@echo "make demo-adapters   draw the demo tasks' data and make the demo's adapters again, with valora's own generator (minutes)"
	@echo "make clean           remove what was built"

setup:
	@PYTHON="$(PYTHON)" tools/setup

setup-tests:
	@PYTHON="$(PYTHON)" tools/setup tests lint arm clang

# Does not import torch, which takes seconds and warns if numpy is missing.
TORCH_FOLDER := from importlib.util import find_spec; print(find_spec('torch').submodule_search_locations[0])

# $(call configure,tests) or $(call configure,). The first call with tests adds them to an existing build folder; later
# calls keep them.
define configure
@[ ! -f "$$($(PY) -c "$(TORCH_FOLDER)")/lib/libtorch_cuda.so" ] || tools/setup cuda
@[ -f $(BUILD)/build.ninja ] $(if $(1),&& grep -q '^VALORA_TESTS:BOOL=ON' $(BUILD)/CMakeCache.txt) || \
  cmake -S . -B $(BUILD) -G Ninja -DVALORA_TESTS=$(if $(1),ON,OFF) -DVALORA_UNITY=$(UNITY) \
  -DCMAKE_PREFIX_PATH="$$($(PY) -c "$(TORCH_FOLDER)")/share/cmake" > $(BUILD).log 2>&1 \
  || { cat $(BUILD).log; exit 1; }
endef

configure: setup
	$(call configure,)

configure-tests: setup-tests
	$(call configure,tests)

build: configure
	@tools/build $(BUILD) $(JOBS) valora

bench: configure
	@tools/build $(BUILD) $(JOBS) valora valora-bench

# The demo serves the tasks of demo/manifest.json, or, without that file, each adapter in demo/adapters.
DEMO_SERVE = serve --model demo/model --served-model-name valora-demo --port $(PORT) \
  $(if $(wildcard demo/manifest.json),--manifest demo/manifest.json,\
    --lora-modules $(foreach adapter,$(wildcard demo/adapters/*),$(notdir $(adapter))=$(adapter))) \
  --allow-runtime-lora-updating --allowed-local-media-path demo --ui-samples demo/samples.json

serve: build
	@$(BUILD)/valora $(DEMO_SERVE)

demo: build
	@$(PY) tools/demo/show.py --port $(PORT) $(if $(ONESHOT),--oneshot) -- $(BUILD)/valora --log-level warning $(DEMO_SERVE)

demo-adapters: build
	@PYTHON="$(PYTHON)" tools/setup tests demo
	@$(PY) tools/demo/make.py datasets demo
	@$(PY) tools/demo/make.py adapters --program $(BUILD)/valora -- $(FUSE)

test: export TESTS_BEGAN := $(shell date +%s)
test: configure-tests
	@BUILD=$(BUILD) JOBS=$(JOBS) tools/test

# Ray is neither needed by the program nor by its tests, and large: it has an environment of its own.
setup-ray:
	@cmp -s python/valora_serve/pyproject.toml $(RAY_VENV)/valora_serve.installed || { \
	  echo "setup: installing python/valora_serve into $(RAY_VENV)"; \
	  { [ -x $(RAY_VENV)/bin/python ] || python3 -m venv $(RAY_VENV); } && \
	  $(RAY_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e 'python/valora_serve[test]' && \
	  cp python/valora_serve/pyproject.toml $(RAY_VENV)/valora_serve.installed; }

RAY_REPLICAS ?= 2
RAY_CORES ?= 0.5
serve-ray: build setup-ray
	@RAY_USAGE_STATS_ENABLED=0 $(RAY_VENV)/bin/serve run valora_serve:app program=$(BUILD)/valora model=demo/model \
	  served_model_name=valora-demo manifest=demo/manifest.json replicas=$(RAY_REPLICAS) cores=$(RAY_CORES) \
	  options="--allowed-local-media-path $(CURDIR)/demo --pool-memory 256M"

test-ray: build setup-ray
	@VALORA_BIN_DIR="$(abspath $(BUILD))" $(RAY_VENV)/bin/python -m mypy --config-file python/valora_serve/pyproject.toml \
	  python/valora_serve/valora_serve
	@cd python/valora_serve && VALORA_BIN_DIR="$(abspath $(BUILD))" $(abspath $(RAY_VENV))/bin/python -m pytest -q

lint: configure-tests
	@tools/lint --build $(BUILD) --jobs $(JOBS) $(LINT_FLAGS)

format:
	@tools/setup lint
	@git ls-files -z '*.cc' '*.h' | xargs -0 .venv/bin/clang-format -i
	@.venv/bin/ruff check --quiet --fix .

conformance: configure-tests
	@tools/build $(BUILD) $(JOBS) ops_test
	@VALORA_CONFORMANCE=full $(BUILD)/src/ops/ops_test --gtest_filter='*Conformance*' --gtest_brief=1
	@VALORA_CONFORMANCE=full BUILD=$(BUILD) JOBS=$(JOBS) PART=gpu tools/test
	@tools/check_cuda --build $(BUILD)-cuda-all --jobs $(JOBS) --architectures "80;86;89;90;120" --units all
	@tools/build $(BUILD) $(JOBS) valora valora-bench probes
	@BUILD=$(BUILD) JOBS=$(JOBS) PART=cuda tools/test
	@BUILD=$(BUILD) JOBS=$(JOBS) tools/arm kernels
	@BUILD=$(BUILD) JOBS=$(JOBS) tools/arm unit
	@BUILD=$(BUILD) JOBS=$(JOBS) tools/arm program
	@VALORA_CONFORMANCE=full BUILD=$(BUILD) JOBS=$(JOBS) PART=python tools/test

fuzz: configure-tests
	@PYTHON="$(PYTHON)" BUILD=$(BUILD) JOBS=$(JOBS) tools/fuzz

install: build
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)" --strip

# Removes the files of the last `make install` from this build folder.
uninstall:
	@[ -f $(BUILD)/install_manifest.txt ] || { echo "uninstall: nothing was installed from $(BUILD)"; exit 1; }
	@sed 's|^|$(DESTDIR)|' $(BUILD)/install_manifest.txt | tr '\n' '\0' | xargs -0 rm -fv
	@for folder in lib/valora share/doc/valora/xgrammar share/doc/valora/flashinfer share/doc/valora; do rmdir "$(DESTDIR)$(PREFIX)/$$folder" 2>/dev/null || true; done

# All of them by default: tar wheel deb image; make test-dist also knows emulated.
DIST ?=
setup-dist:
	@tools/setup dist

dist: build setup-dist
	@python3 tools/dist/make.py --build $(BUILD) $(DIST)

test-dist: build setup-dist
	@python3 tools/dist/check.py --build $(BUILD) $(DIST)

clean:
	rm -rf dist $(BUILD) $(BUILD)-* $(BUILD).log
