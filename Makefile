# Everything that a developer or CI runs. `make demo` and `make test` need Python 3.11+, a C++ compiler and a package
# index; they create .venv.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
CODE := src tests tools examples
# Tests start hundreds of processes: each file is compiled once, when it is first imported, whatever the shell exports.
unexport PYTHONDONTWRITEBYTECODE
ON_BOTH_CORES := --numprocesses 2 --dist worksteal

.PHONY: venv demo check browser test compiled site-test hosts-test gpu-test sanitize aarch64 proofs stress soundness lint style docs site screenshots golden peers torch-suite interop wheels clean

venv: $(INSTALLED)

# Where the code is checked, the compiler's warnings are errors.
CHECKED := $(if $(filter check test,$(MAKECMDGOALS)),--config-settings=cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON)

# Python files are used in place; a change in the engine or in the dependencies needs another install.
# pip does not compile Python files: most files of torch are never imported.
$(INSTALLED): pyproject.toml CMakeLists.txt $(shell find engine -type f -not -path 'engine/tests/*')
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Unisono needs Python 3.11 or newer; choose one: make PYTHON=python3.12')"
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --no-compile --group dev $(CHECKED) --editable .
	@touch $@

demo: venv
	$(BIN)/unisono demo
	$(BIN)/unisono draw --all -o build/site --no-open

# The linter of the page's JavaScript. Without npm the tests skip it with a visible message.
JAVASCRIPT := tools/javascript/node_modules/.package-lock.json
$(JAVASCRIPT): tools/javascript/package-lock.json
	@npm ci --silent --prefix tools/javascript || echo "SKIPPED: no linter for the page's JavaScript (apt-get install nodejs npm)"

# The compiler's warnings about the engine; repeated when one of its files has changed.
ENGINE_CHECKED := build/.engine-checked
$(ENGINE_CHECKED): $(shell find engine -name '*.cpp' -o -name '*.hpp')
	ls engine/src/*/*.cpp engine/tests/*.cpp | xargs -P 2 -n 3 $(CXX) -fsyntax-only -std=c++20 -O1 -Wall -Wextra -Werror -DUNISONO_VARIANT=baseline -Iengine/include
	@mkdir -p build && touch $@

lint: style $(ENGINE_CHECKED)

style: venv $(JAVASCRIPT)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	find engine/include engine/src engine/tests tests/gpu/fake_driver -name '*.[ch]pp' | xargs $(BIN)/clang-format --dry-run --Werror
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

check: lint
	$(BIN)/pytest -m "not slow" $(ON_BOTH_CORES)

# A browser and node, which pip cannot install. Before `style`, which needs npm.
browser: venv
	@$(BIN)/python tools/get_browser.py

# More processes than cores: the slow tests wait for timeouts and for other processes in half of their time.
test: browser
	@$(MAKE) --no-print-directory --jobs 2 style compiled
	$(BIN)/pytest -m "not long" --numprocesses 4 --dist worksteal

# The first import of torch compiles its files: once, and not in every process of the tests at the same time.
compiled: venv
	@$(BIN)/python -c "import torch._dynamo, torch.distributed.checkpoint, torch.distributed.fsdp"

# The long versions of tests: hundreds of groups, all of torch.compile, every codec; and, after `make peers`, the benchmark
# of other libraries.
stress: venv
	$(BIN)/pytest -m long

# Every page and every document of the site in a browser, in both languages, wide and narrow, light and dark (minutes).
# `make test` opens each in one or two of these views.
site-test: browser $(JAVASCRIPT)
	$(BIN)/pytest -m long $(ON_BOTH_CORES) tests/test_every_document.py tests/drawing/test_every_page.py

# Ranks on test hosts: network namespaces of this machine, with links that are cut, slow or lossy (root, minutes).
# `make test` runs a short version.
hosts-test: venv
	$(BIN)/pytest -m hosts tests/hosts tests/torch_backend

# Everything that needs an NVIDIA GPU; its output is stored in docs/gpu_test_output.txt. GPU_PYTHON is an interpreter with
# the CUDA build of torch, and Unisono.
GPU_PYTHON ?= $(BIN)/python
gpu-test:
	$(GPU_PYTHON) tools/gpu_test.py

# Every campaign in its long version, and the table of docs/soundness.md from their counts.
soundness: venv
	$(BIN)/pytest -m campaign $(ON_BOTH_CORES) -o junit_family=xunit1 --junitxml build/soundness.xml
	$(BIN)/python tools/soundness_page.py
	$(BIN)/python tools/tour_pages.py '`make soundness`' build/soundness.xml

# The engine under the compiler's sanitizers, in build/asan and build/tsan (minutes).
sanitize: venv
	$(BIN)/pip install --quiet --group sanitize
	$(BIN)/python tools/sanitize.py

# The engine for aarch64, built by Debian's cross-compiler and run by an emulator, in build/aarch64 (minutes):
# apt-get install g++-aarch64-linux-gnu qemu-user. `make test` compiles a few files.
aarch64: venv
	$(BIN)/python tools/aarch64.py

# The long proofs: every size up to 128, selected sizes up to 512 (powers of two, their neighbours, primes), every root up to 33.
proofs: venv
	$(BIN)/unisono verify all --fresh -n 1-128
	$(BIN)/unisono verify all --fresh -n 129,131,191,251,255,256,257,383,509,511,512
	$(BIN)/unisono verify hierarchical --fresh -n 1-64 --option node=3 --option inner=recursive_halving --option outer=tree
	$(BIN)/unisono verify hierarchical --fresh -n 1-64 --option node=8 --option inner=pat --option outer=rabenseifner
	for collective in broadcast scatter gather reduce all_gather reduce_scatter all_reduce all_to_all barrier; do \
	  $(BIN)/unisono verify $$collective/hierarchical --fresh -n 1-64 --option node=3 || exit 1; \
	  $(BIN)/unisono verify $$collective/hierarchical --fresh -n 1-64 --option node=8 || exit 1; \
	done
	$(BIN)/unisono verify leaders --fresh -n 1-64 --option node=8 --option outer=ring

# The generated parts of the documentation; tests fail when they are out of date.
docs: venv
	$(BIN)/python tools/algorithms_page.py
	$(BIN)/python tools/api_pages.py
	$(BIN)/python tools/cli_page.py
	$(BIN)/python tools/errors_page.py
	$(BIN)/python tools/pictures.py
	$(BIN)/python tools/parallel_pages.py
	$(BIN)/python tools/record_training.py
	$(BIN)/python tools/soundness_page.py
	$(BIN)/python tools/tour_pages.py

# The documents, the references and the gallery as a static site, in build/html. It needs no engine and no torch, so a fresh
# clone makes a small environment for it.
SITE_ENVIRONMENT := build/site-environment
SITE_PYTHON = $(if $(wildcard $(INSTALLED)),$(BIN)/python,$(SITE_ENVIRONMENT)/bin/python)
site: $(if $(wildcard $(INSTALLED)),venv,$(SITE_ENVIRONMENT)/.installed)
	PYTHONPATH=src $(SITE_PYTHON) tools/build_site.py

$(SITE_ENVIRONMENT)/.installed: pyproject.toml
	$(PYTHON) -m venv $(SITE_ENVIRONMENT)
	$(SITE_ENVIRONMENT)/bin/pip install --quiet --upgrade "pip>=25.1"
	$(SITE_ENVIRONMENT)/bin/pip install --quiet --no-compile --group site
	@touch $@

# The screenshots in the README, taken in Chromium; look at them before you commit.
screenshots: venv
	$(BIN)/python tools/screenshots.py

golden: venv
	$(BIN)/python tools/golden.py

# PyTorch's own tests of process groups on Unisono and on Gloo (minutes), and the page of the results.
torch-suite: venv
	rm -f docs/measurements/torch_suite/gloo.json docs/measurements/torch_suite/unisono.json
	-$(BIN)/python tools/torch_suite.py --backend gloo --json docs/measurements/torch_suite/gloo.json
	-$(BIN)/python tools/torch_suite.py --backend unisono --json docs/measurements/torch_suite/unisono.json
ifdef TESTS
	-$(BIN)/python tools/torch_suite.py --backend gloo --tests $(TESTS) --json docs/measurements/torch_suite/files-gloo.json
	-$(BIN)/python tools/torch_suite.py --backend unisono --tests $(TESTS) --json docs/measurements/torch_suite/files-unisono.json
endif
	$(BIN)/python tools/torch_suite.py --page

# Environments with Gloo, Open MPI, MPICH and Intel MPI, for `unisono bench --against`. They take about 2 GB; `make clean`
# keeps them, and rm -r .peers removes them.
peers:
	$(PYTHON) tools/peers.py

# Training with DeepSpeed, Lightning, Accelerate and transformers on Unisono, in a separate environment (.interop, 1.3 GB,
# kept by `make clean`); writes docs/interop.md.
interop:
	$(PYTHON) tools/interop.py

# The sdist and the wheels in dist/, each tested in a bare environment (minutes; docs/installation.md). It needs
# python3.11 and python3.12, and tests with python3.13 where there is one.
WHEELS_ENVIRONMENT := build/wheels/environment
wheels: $(WHEELS_ENVIRONMENT)/.installed
	$(WHEELS_ENVIRONMENT)/bin/python tools/build_wheels.py
	$(WHEELS_ENVIRONMENT)/bin/python tools/test_wheels.py

$(WHEELS_ENVIRONMENT)/.installed: pyproject.toml
	$(PYTHON) -m venv $(WHEELS_ENVIRONMENT)
	$(WHEELS_ENVIRONMENT)/bin/pip install --quiet --upgrade "pip>=25.1"
	$(WHEELS_ENVIRONMENT)/bin/pip install --quiet --no-compile --group wheels
	@touch $@

clean:
	rm -rf .venv build .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
