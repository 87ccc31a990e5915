# Everything runs in .venv, which the first target that needs it makes from the project's own files.
.PHONY: demo pages driver test test-drivers test-broad test-slow test-native test-pythons test-packages check check-style check-mypy check-pyright check-pages dist bench clean

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

# Tests start Python hundreds of times: it finds our modules compiled, also where the environment asks not to keep them.
unexport PYTHONDONTWRITEBYTECODE

demo: $(READY)
	$(BIN)/python examples/demo.py

# OPENCL=--require-opencl: that no OpenCL driver works is an error; without it, what needs one is listed as not run.
test: $(READY)
	$(BIN)/python -m pytest -q $(PROCESSES) $(OPENCL) --ignore tests/tidy -m "not broad and $(QUICK)"

# An OpenCL driver that works on any x86-64 processor, beside the small one that may not.
driver: $(READY)
	$(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check -e ./runtime -e ./runtime/ingot_runtime_devices -e '.[opencl-driver]'

# The tests of OpenCL on the second driver that works, where there are two.
test-drivers: $(READY)
	$(BIN)/python -m pytest -q $(PROCESSES) --opencl-driver 1 --ignore tests/tidy -m "opencl and not broad and $(QUICK)" || test $$? = 5

# What `make test` leaves out of sweeps, and what takes seconds; PART="--part 1/12": a twelfth of it.
test-broad: $(READY)
	$(BIN)/python -m pytest -q $(PROCESSES) $(OPENCL) $(PART) --ignore tests/tidy -m "broad and $(QUICK)"

QUICK := not slow and not pages and not native and not zoo and not qemu and not packages and not browser and not shells and not torch and not contrib and not ptxas and not arm64 and not cpus and not ports

# Three, also on two cores: some tests wait for a clock or for a process. Who has nothing left to do takes from the others, and
# tests of one file stay together as far as that goes, since they share what they prepare.
PROCESSES := -n 3 --dist worksteal

test-slow: $(READY)
	$(BIN)/python -m pytest -q

# The loader on every other CPython that this machine has by name: the interpreters differ in what it relies on.
OTHER_PYTHONS ?= python3.12 python3.13 python3.14 python3.14t
LOADER_TESTS := tests/unit/runtime/test_runtime_*.py tests/unit/runtime/test_support_launch.py tests/hostile/test_bundle_mapped.py tests/hostile/test_loader_*.py

test-pythons:
	@set -e; for python in $(OTHER_PYTHONS); do \
	  if ! $$python -c "" 2>/dev/null; then echo "$$python: not on this machine"; continue; fi; \
	  venv=.venv-$$(basename $$python); \
	  test -x $$venv/bin/python || $$python -m venv $$venv; \
	  $$venv/bin/python -m pip install --no-compile --quiet --disable-pip-version-check -e ./runtime -e ./runtime/ingot_runtime_devices -e '.[dev]'; \
	  $$venv/bin/python -m pytest -q $(PROCESSES) -m "not broad and $(QUICK)" $(LOADER_TESTS); \
	done

# Programs without Python: executables, the loader in C on damaged bundles. `-m gcc` has what needs a C compiler of the machine.
test-native: $(READY)
	$(BIN)/python -m pytest -q -m "native and not gcc"

# Wheels and source archives of the three distributions, as an index would get them.
DISTRIBUTIONS := runtime runtime/ingot_runtime_devices .

dist: $(READY)
	@mkdir -p dist && rm -f dist/*.whl dist/*.tar.gz
	@set -e; for folder in $(DISTRIBUTIONS); do $(BIN)/python -m build --outdir dist $$folder -q; done
	$(BIN)/python -m twine check --strict dist/*.whl dist/*.tar.gz

test-packages: dist
	$(BIN)/python -m pytest -q -m packages

check: check-style check-mypy check-pyright check-pages

check-style: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports

check-mypy: $(READY)
	$(BIN)/mypy

check-pyright: $(READY)
	$(BIN)/pyright

check-pages: $(READY)
	$(BIN)/python -m pytest -q $(PROCESSES) -m "$(QUICK) or pages" tests/tidy $(PAGES)

# Every number, digest and table of the pages that a test holds; review the diff like code.
PAGES := tests/unit/end_to_end/test_demonstration.py tests/unit/end_to_end/test_device_rows.py tests/unit/cli/test_json.py tests/unit/ir/test_errors_page.py tests/unit/runtime/test_format_page.py

pages: $(READY)
	$(BIN)/python -m pytest -q -m pages --bless tests/tidy $(PAGES)

bench: $(READY)
	$(BIN)/python tests/benchmarks/bench_speed_table.py $(ARGS)

clean:
	rm -rf .venv .venv-* .ingot dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Modules are compiled when they are first imported: most of what the packages hold never is, and all of it takes a third of the installation.
$(READY): pyproject.toml runtime/pyproject.toml runtime/ingot_runtime_devices/pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check -e ./runtime -e ./runtime/ingot_runtime_devices -e '.[dev]'
	touch $@
