# Every target sets up what it needs: a virtual environment in .venv with the tested versions of constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

.PHONY: demo test test-matrix test-all lint types docs check bench clean

demo: .venv/.ready-plot
	$(BIN)/infoknife demo

# a file's tests share a process, and with it what they have trained
test: .venv/.ready-test
	$(PYTEST) --dist loadfile --no-loadscope-reorder --durations=25

# all options of what `make test` has one representative of; what takes many minutes is in `make test-all` alone
LONG := all_densities or measured_values or test_bars or does_not_spoil or test_example or forty_distributions \
    or intervals_cover or level_of_the_default
test-matrix: .venv/.ready-test
	$(PYTEST) --dist worksteal -m slow -k "not ($(LONG))"

test-all: .venv/.ready-test
	$(PYTEST) --dist worksteal -m "slow or not slow"

lint: .venv/.ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/.ready-dev
	$(BIN)/mypy

docs: .venv/.ready-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

check: lint types test docs

bench: .venv/.ready-test
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv site .pytest_cache .mypy_cache .ruff_cache

# .venv/.ready-EXTRA: the package is installed with that extra (dev includes test, test includes plot)
.venv/.ready-%: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) -e ".[$*]"
	touch $@
