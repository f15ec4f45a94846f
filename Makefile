# make demo and make test do everything on a machine that has Python 3.11 or 3.12 and nothing else; 3.10 by plain pip.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO_READY := $(VENV)/.demo-ready
RUNS ?= runs
LOCKS := $(wildcard requirements/*.txt)
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install
LOCKED := $(PIP) --require-hashes --find-links requirements

.PHONY: setup demo test lint format docs bench results dist lock reproduce clean

# $(call install,FILES,FILES): install what requirements/ locks, by hash. The first files have torch without CUDA,
# which pip finds if it is configured to or the wheel lies in requirements/; else torch is the package index's.
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'Python 3.11 or newer is needed: make PYTHON=python3.12'; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(LOCKED) -r requirements/build.txt
	$(LOCKED) $(1:%=-r requirements/%.txt) || { echo 'Trying torch of the package index instead.'; $(LOCKED) $(2:%=-r requirements/%.txt); }
	$(PIP) --no-deps --no-build-isolation -e .
endef

setup: $(READY)

$(READY): pyproject.toml $(LOCKS)
	$(call install,dev torch-cpu triton,dev torch)
	touch $@ $(DEMO_READY)

$(DEMO_READY): pyproject.toml $(LOCKS)
	$(call install,demo torch-cpu,demo torch)
	touch $@

demo: $(DEMO_READY)
	$(BIN)/primaldepth demo --out demo-out

test: $(READY)
	$(BIN)/python -m pytest -n auto

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.10 --no-warn-return-any --no-warn-unused-ignores # stubs are for later versions
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

# sdist and wheel; the wheel is installed into an empty environment and used there.
dist: $(READY)
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python scripts/check_wheel.py dist
	$(BIN)/python scripts/sbom.py dist/primaldepth.cdx.json

# Pins and hashes in requirements/, see CONTRIBUTING.md. make lock UPDATE='--upgrade-package NAME'
lock: $(READY)
	$(BIN)/python scripts/lock.py $(UPDATE)

bench: $(READY)
	$(BIN)/python -m benchmarks.speed.solver

# docs/results.md and its figures anew, from what is kept of earlier runs and what has to be computed:
# make results PRIMALDEPTH_DATA=/path/to/benchmarks
results: $(READY)
	$(BIN)/primaldepth report --out $(RUNS)/report
	$(BIN)/python -m benchmarks.pages.report_page $(RUNS)/report docs

# make reproduce MODEL=pdn-any: a recipe of configs/ from nothing: its scenes, its stages, weights and card.
# make reproduce SCALE=8: one scale of the paper's table from nothing: render, train in two stages, evaluate.
# Both need a GPU to be quick, and PRIMALDEPTH_DATA=/path/to/benchmarks; the second takes TEXTURES=/path/to/images.
# The same command goes on where it was stopped.
MODEL ?=
SCALE ?= 8
SCENES ?= 3000
NET := fcn-pdn-s-x$(SCALE)
LARGE := layers=15 stages.0.patch=192 stages.0.batch=16 stages.1.patch=192 stages.1.batch=16
CHANGES := scale=$(SCALE) $(if $(filter 16,$(SCALE)),net.$(LARGE))
reproduce: $(READY)
ifneq ($(MODEL),)
	$(BIN)/primaldepth train configs/$(MODEL).toml --out $(RUNS)/$(MODEL) --workers $$(nproc) --resume
else
	$(BIN)/primaldepth render --out $(RUNS)/scenes --count $(SCENES) --workers $$(nproc) $(if $(TEXTURES),--textures $(TEXTURES))
	$(BIN)/primaldepth train configs/fcn-pdn.toml $(CHANGES:%=--set %) --data $(RUNS)/scenes --out $(RUNS)/$(NET) --resume
	$(BIN)/primaldepth evaluate noisy-middlebury --scale $(SCALE) --device auto \
		--method $(RUNS)/$(NET)/fcn-s-x$(SCALE).safetensors --method $(RUNS)/$(NET)/$(NET).safetensors
endif

clean:
	rm -rf $(VENV) docs/_build demo-out dist
