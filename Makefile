# Each target sets up what it needs by itself (scripts/bootstrap, which is quick when nothing is missing).
JOBS ?= $(shell nproc)
PREFIX ?= $(CURDIR)/install
SOAK_MINUTES ?= 10
STRESS_MINUTES ?= 10
SWEEP_MINUTES ?= 10
# The progress of a build: per cent, steps, seconds.
export NINJA_STATUS ?= [%p %f/%t %es]$(SPACE)
SPACE = $() $()
SOURCES = git ls-files '*.cc' '*.h'

.DEFAULT_GOAL = help
.PHONY: help build test wheel test-python deb archive demo foreign asan tsan clang isa soak sweep bench format lint install clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## set up and build program and library: build/release/bin/lamina, build/release/lib/liblamina.so
	@scripts/bootstrap
	@$(call cmake,release,--target lamina --target lamina_command)

test: ## set up, build the release and the wheel, run all tests, those of the Python package on the installed wheel
	@scripts/bootstrap --test-models --python --packages
	@$(call cmake,release)
	@scripts/wheel
	@python=$$(scripts/wheel-environments) && LAMINA_INSTALLED_PYTHON=$$python ctest --preset release -j $(JOBS)

wheel: ## build the Python package, for every Python from 3.10 on: dist/lamina-*.whl
	@scripts/bootstrap --python
	@$(call cmake,release,--target lamina --target lamina_command --target lamina_python)
	@scripts/wheel

test-python: wheel ## build the wheel, install it for each Python that is here, run the tests of the package there
	@status=0; pythons=$$(scripts/wheel-environments --all) || exit 1; for python in $$pythons; do \
	  echo "== $$($$python --version): $$python"; \
	  LAMINA_INSTALLED_PYTHON=$$python ctest --preset release -R '^python\.' -j $(JOBS) || status=1; done; exit $$status

deb: ## build the Debian package: command, library, headers, manual pages, completions: dist/lamina_*.deb
	@$(call package,DEB)

archive: ## build an archive that runs where it is unpacked: dist/lamina-*.tar.gz
	@$(call package,TGZ)

demo: ## set up, build, read the text in an image with real models
	@scripts/bootstrap --demo
	@$(call cmake,release,--target lamina_demo)
	@build/release/bin/ocr_demo

foreign: ## run packages from PyPI that call ONNX Runtime (OCR, speech, file types) on it and on lamina, and compare
	@scripts/bootstrap --python
	@$(call cmake,release,--target lamina_python)
	@.deps/python/bin/python3 tests/python/foreign/compare.py

asan: ## run the tests under the address and undefined-behaviour sanitizers, those of the Python package, too
	@scripts/bootstrap --test-models --sanitize --python
	@$(call cmake,asan)
	@ctest --preset asan -j $(JOBS)

tsan: ## run the tests of requests and threads under the thread sanitizer, then random requests for STRESS_MINUTES=10
	@scripts/bootstrap --test-models --sanitize
	@scripts/tbb-with-tsan
	@$(call cmake,tsan,--target exec_tests --target api_tests --target kernels_tests --target base_tests --target c_interface_tests)
	@ctest --preset tsan -R '^(exec|api|kernels|base|c_interface)$$'
	@LAMINA_SEED=$${LAMINA_SEED:-$$(date +%s)} LAMINA_STRESS_MINUTES=$(STRESS_MINUTES) \
	  TSAN_OPTIONS=suppressions=cmake/tsan.supp:halt_on_error=0:exitcode=66 \
	  build/tsan/bin/api_tests --gtest_brief=1 --gtest_filter='Stress.*'

clang: ## build with clang 16 and run the tests
	@scripts/bootstrap --test-models --clang
	@$(call cmake,clang)
	@ctest --preset clang -j $(JOBS)

isa: test ## run all tests limited to each lower instruction set in turn, and some on processors that qemu-user emulates
	@for isa in sse41 avx2; do echo "== $$isa"; \
	  LAMINA_MAX_ISA=$$isa ctest --preset release -j $(JOBS) || exit 1; done
	@for isa in sse41 avx2 avx512; do echo "== sweep of oneDNN's implementations, $$isa"; \
	  build/release/bin/onednn_sweep --max-isa $$isa --seed 1 --cases 150 || exit 1; \
	  build/release/bin/onednn_sweep --max-isa $$isa --edges --minutes 1 || exit 1; done
	@scripts/bootstrap --isa
	@.deps/py/bin/python3 tests/emulated.py build/release

soak: ## run random graphs, quantised patterns and mutated models against the interpreter, and damaged files on each reader, with new seeds, for SOAK_MINUTES=10 each
	@scripts/bootstrap --test-models
	@$(call cmake,release,--target property_tests formats_tests quantised_tests mutation_tests api_tests)
	@LAMINA_KEEP_MODELS=build/release/seed_models build/release/bin/formats_tests --gtest_brief=1
	@seed=$${LAMINA_SEED:-$$(date +%s)}; running=; status=0; \
	for job in $$(seq $(JOBS)); do \
	  LAMINA_SEED=$$((seed + job)) LAMINA_SOAK_MINUTES=$(SOAK_MINUTES) \
	    build/release/bin/property_tests --gtest_brief=1 --gtest_filter=Property.soak & running="$$running $$!"; \
	  LAMINA_SEED=$$((seed + job)) LAMINA_SOAK_MINUTES=$(SOAK_MINUTES) \
	    build/release/bin/quantised_tests --gtest_brief=1 & running="$$running $$!"; \
	  LAMINA_SEED=$$((seed + job)) LAMINA_SOAK_MINUTES=$(SOAK_MINUTES) LAMINA_SEED_MODELS=build/release/seed_models \
	    build/release/bin/mutation_tests --gtest_brief=1 --gtest_filter=Mutation.soak & running="$$running $$!"; \
	  LAMINA_SEED=$$((seed + job)) LAMINA_SOAK_MINUTES=$(SOAK_MINUTES) \
	    GTEST_TOTAL_SHARDS=$(JOBS) GTEST_SHARD_INDEX=$$((job - 1)) \
	    build/release/bin/formats_tests --gtest_brief=1 --gtest_filter='*.soak' & running="$$running $$!"; done; \
	LAMINA_SOAK_MINUTES=$(SOAK_MINUTES) build/release/bin/api_tests --gtest_brief=1 --gtest_filter='Growth.*' & running="$$running $$!"; \
	for job in $$running; do wait $$job || status=1; done; exit $$status

sweep: ## run each oneDNN implementation on random layers of all sizes on each instruction set, with new seeds, for SWEEP_MINUTES=10
	@scripts/bootstrap
	@$(call cmake,release,--target onednn_sweep)
	@status=0; for isa in sse41 avx2 avx512 native; do \
	  build/release/bin/onednn_sweep --max-isa $$isa --cases 1000000000 --minutes $$(($(SWEEP_MINUTES) / 4 + 1)) \
	    --refusals || status=1; done; exit $$status

bench: ## time every kernel on the problems of bench/problems; for some: BENCH="--kernel native bench/problems/bert_mini.txt"
	@scripts/bootstrap
	@mkdir -p build; cmake --preset release -DLAMINA_BENCH=ON >build/bench.log 2>&1 || { cat build/bench.log; exit 1; }
	@$(call cmake,release,--target kernel_bench)
	@build/release/bin/kernel_bench $(or $(BENCH),--seconds 0.02 --repetitions 3)

format: ## clang-format all sources
	@scripts/bootstrap --lint
	@$(SOURCES) | xargs clang-format -i

lint: ## check the format of all sources, and run ruff and clang-tidy
	@scripts/bootstrap --lint
	@.deps/lint/bin/ruff check --quiet .
	@$(SOURCES) | xargs clang-format --dry-run -Werror
	@cmake --preset release -B build/lint -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DLAMINA_UNITY=OFF -DLAMINA_CCACHE= >/dev/null
	@git ls-files 'src/*.cc' | xargs -P $(JOBS) -n 8 clang-tidy-16 -p build/lint --quiet \
	  --extra-arg=-Wno-unknown-warning-option --warnings-as-errors='*'

install: build ## install into PREFIX (./install)
	@cmake --install build/release --prefix $(PREFIX)

clean: ## remove build, dist and install (downloads of scripts/bootstrap stay in .deps)
	rm -rf build dist install

# cmake(PRESET, options of the build): configures, quietly when all is well, and builds.
define cmake
{ mkdir -p build; cmake --preset $(1) >build/$(1).log 2>&1 || { cat build/$(1).log; exit 1; }; \
cmake --build --preset $(1) -j $(JOBS) $(2); }
endef

# package(GENERATOR of CPack)
define package
scripts/bootstrap --packages && $(call cmake,release,--target lamina --target lamina_command) && \
scripts/package $(1)
endef
