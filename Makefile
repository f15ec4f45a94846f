# make demo and make test do everything on a machine that has Python 3.11 or 3.12 and nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RUNS ?= runs

.PHONY: setup demo test lint format docs bench results dist reproduce clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'Python 3.11 or newer is needed: make PYTHON=python3.12'; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/primaldepth demo --out demo-out

test: $(READY)
	$(BIN)/python -m pytest -n auto

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

# sdist and wheel; the wheel is installed into an empty environment and used there.
dist: $(READY)
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python scripts/check_wheel.py dist

bench: $(READY)
	$(BIN)/python -m benchmarks.solver

# docs/results.md and its figures anew, from what is kept of earlier runs and what has to be computed:
# make results PRIMALDEPTH_DATA=/path/to/benchmarks
results: $(READY)
	$(BIN)/primaldepth report --out $(RUNS)/report
	$(BIN)/python -m benchmarks.report_page $(RUNS)/report docs

# One scale of the paper's table from nothing: render, train in two stages, evaluate. Needs a GPU to be quick.
# make reproduce SCALE=8 TEXTURES=/path/to/images PRIMALDEPTH_DATA=/path/to/benchmarks
SCALE ?= 8
SCENES ?= 3000
NET := fcn-pdn-s-x$(SCALE)
reproduce: $(READY)
	$(BIN)/primaldepth render --out $(RUNS)/scenes --count $(SCENES) --workers $$(nproc) $(if $(TEXTURES),--textures $(TEXTURES))
	$(BIN)/primaldepth train configs/$(NET).toml --data $(RUNS)/scenes --out $(RUNS)/$(NET) --resume
	$(BIN)/primaldepth evaluate noisy-middlebury --scale $(SCALE) --device auto \
		--method $(RUNS)/$(NET)/fcn-s-x$(SCALE).safetensors --method $(RUNS)/$(NET)/$(NET).safetensors

clean:
	rm -rf $(VENV) docs/_build demo-out dist
