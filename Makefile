# valora: `make demo` and `make test` do everything on a fresh Debian 12; `make help` lists the rest.
BUILD ?= build
JOBS ?= $(shell nproc)
PYTHON ?=
PORT ?= 8000
ONESHOT ?=
FUSE ?=
PY := $(if $(PYTHON),$(PYTHON),.venv/bin/python)
export CCACHE_SLOPPINESS := pch_defines,time_macros

.DEFAULT_GOAL := help
.PHONY: help setup configure build serve demo demo-adapters test conformance fuzz clean

help:
	@echo "make demo            install what is missing, build, serve the demo model, ask it, keep serving (ONESHOT=1 ends)"
	@echo "make test            install what is missing, build, run every test"
	@echo "make conformance     the projections on all of Punica's and vLLM's test grids (make test takes a sample of them)"
	@echo "make fuzz            fuzz every parser, FUZZ_SECONDS=60 each, FUZZ_JOBS=1 at a time (fuzz/README.md)"
	@echo "make build           build/valora; PYTHON=/path/python builds against that interpreter's torch (CUDA, say)"
	@echo "make serve           serve the demo model and its adapters on 127.0.0.1:8000; PORT=… takes another port, for make demo too"
	@echo "make demo-adapters   draw the demo tasks' data and make the demo's adapters again, with valora's own generator (minutes)"
	@echo "make clean           remove what was built"

setup:
	@PYTHON="$(PYTHON)" tools/setup

configure: setup
	@[ -f $(BUILD)/build.ninja ] || cmake -S . -B $(BUILD) -G Ninja \
	  -DCMAKE_PREFIX_PATH="$$($(PY) -c 'import torch; print(torch.utils.cmake_prefix_path)')" > $(BUILD).log 2>&1 \
	  || { cat $(BUILD).log; exit 1; }

build: configure
	@cmake --build $(BUILD) -j $(JOBS) --target valora

# What the demo serves: the tasks of demo/manifest.json; without it every folder of demo/adapters under its own name.
DEMO_SERVE = serve --model demo/model --served-model-name valora-demo --port $(PORT) \
  $(if $(wildcard demo/manifest.json),--manifest demo/manifest.json,\
    --lora-modules $(foreach adapter,$(wildcard demo/adapters/*),$(notdir $(adapter))=$(adapter))) \
  --allow-runtime-lora-updating --allowed-local-media-path demo

serve: build
	@$(BUILD)/valora $(DEMO_SERVE)

demo: build
	@$(PY) tools/demo/show.py --port $(PORT) $(if $(ONESHOT),--oneshot) -- $(BUILD)/valora --log-level warning $(DEMO_SERVE)

demo-adapters: build
	@$(PY) -m pip install --quiet --disable-pip-version-check -r tools/demo/requirements.txt
	@$(PY) tools/demo/make.py datasets demo
	@$(PY) tools/demo/make.py adapters --program $(BUILD)/valora -- $(FUSE)

test: configure
	@BUILD=$(BUILD) JOBS=$(JOBS) tools/test

conformance: configure
	@cmake --build $(BUILD) -j $(JOBS) --target ops_test
	@VALORA_CONFORMANCE=full $(BUILD)/src/ops/ops_test --gtest_filter='*Conformance*' --gtest_brief=1

fuzz: configure
	@PYTHON="$(PYTHON)" BUILD=$(BUILD) JOBS=$(JOBS) tools/fuzz

clean:
	rm -rf $(BUILD) $(BUILD)-* $(BUILD).log
