# Everything runs in .venv, which the first target that needs it makes from the project's own files.
.PHONY: demo test test-slow check bench clean

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

demo: $(READY)
	$(BIN)/python examples/demo.py

test: $(READY)
	$(BIN)/python -m pytest -q -n 2 -m "not slow and not zoo and not qemu"

test-slow: $(READY)
	$(BIN)/python -m pytest -q

check: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pyright

bench: $(READY)
	$(BIN)/python tests/benchmarks/bench_speed_table.py $(ARGS)

clean:
	rm -rf .venv .ingot dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(READY): pyproject.toml runtime/pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ./runtime -e '.[dev]'
	touch $@
