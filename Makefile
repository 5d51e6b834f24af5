# Every target sets up what it needs: a virtual environment in .venv with the tested versions of constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

.PHONY: demo test test-matrix test-all fuzz lint types docs check bench clean

demo: .venv/.ready-demo
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

# 20,000 calls with generated input, in slices by seed that can be run alone: make fuzz SLICES="7 8"
SLICES ?= 1 2 3 4 5 6 7 8 9 10
fuzz: .venv/.ready-test
	for seed in $(SLICES); do \
	    FUZZ_SEED=$$seed FUZZ_EXAMPLES=18 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -s -p no:cacheprovider tests/fuzz || exit 1; \
	done

lint: .venv/.ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/.ready-dev
	$(BIN)/mypy

docs: .venv/.ready-dev
	$(BIN)/zensical build --strict

check: lint types test docs

bench: .venv/.ready-test
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv site .pytest_cache .mypy_cache .ruff_cache

# .venv/.ready-EXTRA: the package is installed with that extra (dev includes test, test includes plot)
.venv/.ready-%: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing PyTorch and the rest into .venv; the first time, this takes a few minutes."
	$(PIP) -e ".[$*]"
	touch $@
