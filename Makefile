# Everything a developer types. `make help` lists it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
NEEDED_PYTHON := 3.11
# Processes of tests side by side. Of unit tests three, since some wait for servers, and one that is free takes over half of what
# another has left; files that prepare something in Spark for all of their tests stay whole.
WORKERS := --numprocesses=3 --dist=worksteal
BY_FILE := --numprocesses=2 --dist=loadfile
DAGS := --dist=loadgroup

# Compiled modules are kept, whatever the environment says: tests start hundreds of processes, and each would compile them again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup classes demo test dags-beside test-unit test-near test-integration test-dags test-faults test-yarn test-k8s test-azure test-team test-celery test-engines lint format bench soak compose-config compose-env lock own-jar clean

help: ## List the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  %-18s %s\n", $$1, $$2 }'

setup: $(INSTALLED) ## Make .venv from the lock file (again only when that has changed)

$(INSTALLED): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < tuple(map(int, "$(NEEDED_PYTHON)".split("."))))' 2>/dev/null || \
	  { echo "Python $(NEEDED_PYTHON) or newer is needed, and '$(PYTHON)' is not that." >&2; \
	    echo "Install it (Debian, Ubuntu: apt install python3 python3-venv), or name one: make setup PYTHON=python3.13" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "'$(PYTHON)' can't make virtual environments: its venv module is not installed." >&2; \
	    echo "Install it (Debian, Ubuntu: apt install python3-venv), then run make again." >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

classes: setup ## Fetch the jars and make the archive of classes that drivers share (half a minute, once)
	@$(BIN)/python -m headwater.runtime.shared_classes

demo: setup ## Run the whole path on this machine until Ctrl-C; ONCE=1 ends after the second update
	$(BIN)/python -m headwater_demo demo $(if $(filter 1 yes true,$(ONCE)),--once)

# Tests of DAGs often wait for Airflow: one process of them beside the two that run Spark uses the cores meanwhile.
test: test-unit classes ## Run the tests but those that kill: every one, the same ones each time
	@echo "The tests of the DAGs run beside these; what they say comes at the end."; log=$$(mktemp); \
	  $(MAKE) --no-print-directory --jobs=2 test-integration dags-beside LOG="$$log"; failed=$$?; cat "$$log"; rm "$$log"; exit $$failed

dags-beside: classes
	@$(BIN)/pytest tests/dags $(DAGS) --numprocesses=1 >$(or $(LOG),/dev/stdout) 2>&1

test-unit: setup ## Run the unit tests: no JVM, three minutes
	$(BIN)/pytest tests/unit $(WORKERS)

test-near: setup ## Run the unit tests near what has changed since the last commit (or SINCE=main): seconds
	@tests=$$(PYTHONPATH=.:include:jobs:plugins $(BIN)/python -m tests.near $(or $(SINCE),HEAD)) || exit $$?; \
	  if [ -n "$$tests" ]; then $(BIN)/pytest $$tests $(WORKERS); else echo "No unit test is near what has changed since $(or $(SINCE),HEAD)."; fi

test-integration: classes ## Run the tests with a real broker and real tables
	$(BIN)/pytest tests/integration $(BY_FILE)

test-dags: classes ## Run the tests of the DAGs, with real submits
	$(BIN)/pytest tests/dags $(DAGS) --numprocesses=2

test-faults: classes ## Run the tests that kill and corrupt things
	$(BIN)/pytest tests/fault_injection --numprocesses=2 --dist=load --maxschedchunk=1

test-yarn: classes ## Run updates on a real YARN on loopback: 74 MB of jars once, a JDK, three minutes
	$(BIN)/pytest -s tests/yarn

# Airflow's provider for Kubernetes lies beside .venv, not in it: nothing else here needs it.
test-k8s: classes ## Run updates in pods, on a real API server of Kubernetes: root; Go, 5 minutes of a core and 3 GB once, 150 MB of Python; five minutes
	test -d .venv-k8s || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --target .venv-k8s -r tests/k8s/requirements.lock
	PYTHONPATH=$(CURDIR)/.venv-k8s $(BIN)/pytest tests/k8s

test-azure: classes ## Run what runs on S3 on an emulator of Azure: npm, 365 MB once; three minutes
	$(BIN)/pytest -s tests/azure

# A network of its own: the ports of docker-compose.yaml are free in it, and nothing outside reaches them.
test-team: classes ## Run docker-compose.yaml's services without containers, two schedulers, one killed: root, Postgres, four minutes
	@PYTHONPATH=include $(BIN)/python -m tests.team.needs $@
	unshare --net sh -c 'ip link set lo up && exec $(BIN)/pytest -s tests/team'

# Airflow's provider for Celery lies beside .venv, as in an image that is built without it.
test-celery: classes ## Run updates on workers of Celery by docker-compose.celery.yaml, some killed: root, Postgres, Redis; 34 MB of Python; ten minutes on two busy cores
	@PYTHONPATH=include $(BIN)/python -m tests.team.needs $@
	test -d .venv-celery || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --target .venv-celery -r requirements-celery.lock
	PYTHONPATH=$(CURDIR)/.venv-celery unshare --net sh -c 'ip link set lo up && exec $(BIN)/pytest -s tests/celery'

test-engines: classes ## Read tables of ours with DuckDB, Polars and delta-rs: 120 MB once, a minute
	test -x .venv-engines/bin/python || $(PYTHON) -m venv .venv-engines
	.venv-engines/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r tests/engines/requirements.lock
	HEADWATER_ENGINES=$(CURDIR)/.venv-engines/bin/python $(BIN)/pytest -s tests/engines

lint: setup ## Check style, types and who imports whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=include:jobs:plugins $(BIN)/lint-imports

format: setup ## Format the code
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: classes ## Measure against what one would write instead, and render docs/benchmarks.md (one row: ONLY=small; whether the long ones run: ONLY=smoke)
	BENCH_SECONDS=$(or $(BENCH_SECONDS),$(if $(ONLY),240,60)) $(BIN)/pytest -s tests/benchmarks$(if $(ONLY),/test_$(ONLY).py); \
	  measured=$$?; PYTHONPATH=.:include:jobs:plugins $(BIN)/python -m tests.benchmarks.frame.page && exit $$measured

soak: classes ## Loops over random seeds: drivers killed at every point, then RUNS=40 times at random (again: SEED=n, CELLS=regex, SECONDS=300); and longer examples of all
	$(eval SEED := $(or $(SEED),$(shell $(PYTHON) -c 'import random; print(random.randrange(10**6))')))
	@echo "SEED=$(SEED)"
	HEADWATER_SEED=$(SEED) $(if $(CELLS),HEADWATER_CELLS='$(CELLS)') $(if $(SECONDS),SOAK_SECONDS=$(SECONDS)) SOAK_RUNS=$(or $(RUNS),$(SOAK_RUNS),$(if $(CELLS),0,40)) $(BIN)/pytest -s tests/fault_injection
	HEADWATER_SEED=$(SEED) $(BIN)/pytest tests/integration $(BY_FILE) --hypothesis-seed=$(SEED)
	HEADWATER_SEED=$(SEED) $(BIN)/pytest tests/dags $(DAGS) --numprocesses=2 --hypothesis-seed=$(SEED)

# Others on this machine can't enter the folder; in a container the ordinary user has to read the file that is mounted.
compose-env: ## Make in .secrets/ the secrets for docker compose that are not there yet
	@umask 077 && mkdir -p .secrets && cd .secrets && umask 022 && $(PYTHON) -c 'import base64, os, pathlib, secrets; \
	  sizes = {"postgres_password": 24, "airflow_admin_password": 12, "spark_secret": 32, "airflow_jwt_secret": 48, "airflow_secret_key": 48, "redis_password": 32}; \
	  made = {name: secrets.token_urlsafe(size) for name, size in sizes.items()}; \
	  made["airflow_fernet_key"] = base64.urlsafe_b64encode(os.urandom(32)).decode(); \
	  [os.replace(pathlib.Path(f"{name}.new").write_text(text) and f"{name}.new", name) for name, text in made.items() if not os.path.exists(name)]'

compose-config: setup compose-env ## Check docker-compose.yaml with the real Compose, alone and with docker-compose.celery.yaml
	compose=$$($(BIN)/python -c 'import importlib.util as u, pathlib; print(pathlib.Path(u.find_spec("compose").origin).with_name("docker-compose"))'); \
	  $$compose -f docker-compose.yaml config --quiet && $$compose -f docker-compose.yaml -f docker-compose.celery.yaml config --quiet

# Maintainers only: needs uv. Both files are solved for all Python versions from $(NEEDED_PYTHON) on.
lock: ## Solve the requirements anew, and pin the jars anew
	for name in requirements requirements-dev; do \
	  uv pip compile --universal --python-version $(NEEDED_PYTHON) --generate-hashes --no-header --no-annotate \
	    $$name.txt --output-file $$name.lock; done
	$(MAKE) setup
	$(BIN)/python -m headwater.runtime.jars --lock

own-jar: setup ## Build the jar of the classes in java/ again, after a change or for another Spark (needs a JDK), and pin it
	PYTHONPATH=include $(BIN)/python -m headwater.runtime.own_classes

clean: ## Remove what the demo, the tests and the tools left here; keeps .venv and the cache of downloads
	rm -rf .demo .headwater .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache spark-warehouse metastore_db derby.log
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
