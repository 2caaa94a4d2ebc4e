# One command from a clone to a book. Everything is installed into .venv and nowhere else.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

RUN ?= demo
# folders that a run may take (biastransfer.graph.entries says what each is)
DATA := RELEASED COCO_MINI COCO OPENIMAGES BOXES
CORES ?= 2
# where a run executes: local | slurm
PROFILE ?= local
VENV := .venv
PY := $(VENV)/bin/python
export PYTHONPATH :=
export JUPYTER_PLATFORM_DIRS := 1

.PHONY: help setup book single test check bench clean

help:
	@echo 'make book [RUN=demo]     set up, execute what is stale, render the book: _build/html/index.html'
	@echo 'make book RUN=released RELEASED=<folder or tar> COCO_MINI=<folder> BOXES=<folder>   the same, from real photographs'
	@echo 'make book RUN=paper COCO=<folder> OPENIMAGES=<folder> RELEASED=<folder or tar>   the whole programme'
	@echo 'make single              the book that was made last as one page: _build/single/_build/singlehtml/intro.html'
	@echo 'make test                unit tests, every notebook executed twice and compared, the book'
	@echo 'make check               style, types, layers and budgets'
	@echo 'make bench               benchmarks as ratios to a bare limit'
	@echo 'make setup [TORCH=cpu TORCH_INDEX=<address of an index with CPU wheels>]   .venv from requirements.lock'
	@echo 'make clean               remove what can be made again, except .venv and data/raw'
	@echo 'runs: $(basename $(notdir $(wildcard runs/*.yaml)))'

setup:
	@TORCH="$(TORCH)" TORCH_INDEX="$(TORCH_INDEX)" PYTHON="$(PYTHON)" bash profiles/local/setup.sh

book: setup
	@$(PY) -m biastransfer.graph.build --run '$(RUN)' --cores $(CORES) --profile '$(PROFILE)' \
	$(foreach name,$(DATA),$(if $($(name)),--data '$(name)=$($(name))'))

# Of the pages that `make book` gathered last; paper comes out of a browser's print dialogue.
single: setup
	@$(VENV)/bin/jupyter-book build book --config _config.yml --path-output _build/single --builder singlehtml -q

# The smoke run is executed, then executed again and compared output by output (nbval), with an empty cache of
# embeddings; the pages that train come first, since the others read their checkpoints.
NBVAL := $(PY) -m pytest -q -n 2 --dist loadfile -p no:cacheprovider --nbval
# One thread each, as runs/smoke.yaml has it.
test: export OMP_NUM_THREADS := 1
test: setup
	@$(PY) -m biastransfer.graph.build --run smoke --pages-only --cores $(CORES)
	@$(PY) -m pytest -q -n 2 --dist loadfile tests/unit tests/notebooks tests/book lib --doctest-modules
	@cache=$$(mktemp -d); trap 'rm -rf "$$cache"' EXIT; export BIASTRANSFER_CACHE=$$cache; \
	for pages in '0[0-2]' '0[3-9]' '1[0-9]'; do $(NBVAL) data/derived/executed/smoke/$$pages*.ipynb || exit 1; done

check: setup
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy lib/biastransfer
	@$(PY) -m pytest -q tests/unit/test_house.py tests/unit/test_setup.py

bench: setup
	@for file in $(filter-out %/record.py,$(wildcard benchmarks/*.py)); do echo "== $$file"; $(PY) "$$file"; done

clean:
	rm -rf _build book/results data/derived .snakemake .pytest_cache .ruff_cache .mypy_cache
