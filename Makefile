# `make` lists the targets. Everything runs from .venv, which `make setup` builds from hashed lock files.

SHELL := /bin/bash
.DEFAULT_GOAL := help

BIN := .venv/bin
SEEDS ?= 2000
LOCK_OPTIONS ?=
JRE ?= openjdk-17-jre-headless

# One word per output.
PROTOC_PLUGINS := python pyi grpc_python
PROTO_FILES = $(wildcard proto/ordercast/v1/*.proto)

.PHONY: help setup java demo demo-analytics run test test-long test-kafka test-k8s test-k8s-long test-versions lint baseline proto schema dashboards helm sim chaos bench simbench mutants papers lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# $(call say,environment,what is done): before each step, so that nobody has to wonder.
say = @echo "setting up $(1): $(2)"
PIP_INSTALL = -m pip install --disable-pip-version-check
# $(call packages,lock): how many there are in requirements/<lock>.lock
packages = $(shell grep -c '^[A-Za-z0-9].*==' requirements/$(1).lock)
# $(call install,environment,lock,how long it takes): pip's hundreds of lines become one for each ten packages
define install
$(call say,$(1),installing $(call packages,$(2)) packages of requirements/$(2).lock$(COMMA) $(3))
@set -o pipefail; $(1)/bin/python $(PIP_INSTALL) --progress-bar off --require-hashes -r requirements/$(2).lock | \
	awk -v all=$(call packages,$(2)) ' \
		/^(Collecting|Requirement already satisfied)/ && ++got % 10 == 0 { print "  " got " of " all; fflush() } \
		/^Installing collected packages/ { print "  all fetched, unpacking"; fflush() }'
endef
# $(call install_itself,environment)
define install_itself
$(call say,$(1),installing Ordercast itself$(COMMA) a few seconds)
@$(1)/bin/python $(PIP_INSTALL) --quiet --no-deps --no-build-isolation -e .
endef
COMMA := ,

setup: .venv/.ready java ## make .venv from requirements/dev.lock and install the project into it

.venv/.ready: requirements/dev.lock pyproject.toml
	@python=""; \
	for candidate in python3.11 python3; do \
		if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			python=$$candidate; break; \
		fi; \
	done; \
	if [ -z "$$python" ]; then echo "Python 3.11 or later is needed, and was not found" >&2; exit 1; fi; \
	[ -x $(BIN)/python ] || { echo "setting up .venv: making it with $$python, a few seconds"; $$python -m venv .venv; }
	$(call install,.venv,dev,a minute or two the first time)
	$(call install_itself,.venv)
	@touch $@

# The systems that the bench compares with, which nothing else needs.
.venv/.bench: .venv/.ready requirements/bench.lock
	$(call install,.venv,bench,a minute the first time)
	@touch $@

# What the telemetry service and the Spark job need beside the rest.
.venv/.analytics: .venv/.ready requirements/analytics.lock
	$(call install,.venv,analytics,a few minutes the first time: Spark is large)
	@touch $@

# Helm, and the schemas of Kubernetes.
.venv/.chart: .venv/.ready requirements/chart.lock
	$(call install,.venv,chart,half a minute the first time)
	@touch $@

# The client of Kubernetes, with which pods find each other.
.venv/.k8s: .venv/.ready requirements/k8s.lock
	$(call install,.venv,k8s,half a minute the first time)
	@touch $@

# Prometheus and promtool, out of Debian's package and not installed: that would start a server on this machine.
.venv/.prometheus: .venv/.ready
	@if command -v prometheus >/dev/null && command -v promtool >/dev/null; then \
		touch $@; \
	elif ! command -v apt-get >/dev/null; then \
		echo "no prometheus and no apt-get here: tests with Prometheus are left out" >&2; \
	else \
		echo "setting up .venv: fetching Prometheus with apt, half a minute"; \
		rm -rf .venv/prometheus && mkdir .venv/prometheus && cd .venv/prometheus && \
		{ apt-get -qq download prometheus 2>/dev/null || \
			{ apt-get -qq update && apt-get -qq download prometheus; }; } && \
		dpkg -x prometheus_*.deb . && rm prometheus_*.deb && touch ../.prometheus || \
		echo "no prometheus to be had from apt: tests with Prometheus are left out" >&2; \
	fi

# Spark needs Java, and nothing else does: without it, its tests are left out.
java:
	@if [ -n "$$JAVA_HOME" ] || command -v java > /dev/null; then \
		:; \
	elif [ "$$(id -u)" -eq 0 ] && command -v apt-get > /dev/null; then \
		echo "installing a JRE with apt, for the Spark job, a minute or two the first time"; \
		{ apt-get update -qq && apt-get install -qq -y --no-install-recommends $(JRE) > /dev/null; } || \
			echo "it could not be installed: the Spark job needs Java 17 or later" >&2; \
	else \
		echo "there is no Java, which the Spark job needs: install 17 or later, such as $(JRE)"; \
	fi

# Spark's connector to Kafka is not published for every version of Spark: these tests have an environment of their own.
.venv-kafka/.ready: .venv/.ready requirements/kafka-test.lock
	$(call say,.venv-kafka,making it$(COMMA) a few seconds)
	@[ -x .venv-kafka/bin/python ] || $(BIN)/python -m venv .venv-kafka
	$(call install,.venv-kafka,dev,a minute or two the first time)
	$(call install,.venv-kafka,kafka-test,a few minutes the first time: Spark is large)
	$(call install_itself,.venv-kafka)
	@touch $@

# Jars from Maven Central: a broker, and the connector.
build/kafka/%/.ready: tests/kafka/%.xml
	@echo "fetching jars from Maven Central for $*, a few minutes the first time"
	mvn --quiet --batch-mode -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$(@D)
	@touch $@

demo: setup ## kill a node while messages go to several groups, and see them come out in one order
	$(BIN)/ordercast demo

demo-analytics: setup .venv/.analytics ## a slow disk and a killed node under load: the Spark job names the culprit, and audits the order
	$(BIN)/ordercast analytics demo

run: setup ## run a cluster of three nodes on this machine, until Ctrl-C
	$(BIN)/ordercast up

# Two more than the two processors that the tests are meant for: those with real clusters wait for much.
WORKERS ?= 4
# Tests start hundreds of processes: compiling the same modules in each of them would take minutes.
test: setup .venv/.bench .venv/.analytics .venv/.chart .venv/.k8s .venv/.prometheus ## run the tests
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m tests.second_chance -n $(WORKERS) --durations=20

test-long: setup .venv/.bench .venv/.analytics .venv/.chart .venv/.k8s .venv/.prometheus ## run the tests that take long: more seeds, more faults, more of each kind
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -m long

test-kafka: setup .venv-kafka/.ready build/kafka/broker/.ready build/kafka/connector/.ready ## run the job from Kafka
	.venv-kafka/bin/pytest -n0 tests/kafka

K8S_OPTIONS := -n0 -vv --durations=0 --override-ini=timeout=1200
# Images have to be where the cluster finds them: ORDERCAST_IMAGE, ORDERCAST_NEXT_IMAGE, ORDERCAST_ANALYTICS_IMAGE.
test-k8s: setup .venv/.chart .venv/.k8s .venv/.prometheus ## install the chart on the cluster of KUBECONFIG, and be hard on it
	$(BIN)/python -m tests.second_chance $(K8S_OPTIONS) tests/k8s

test-k8s-long: setup .venv/.chart .venv/.k8s .venv/.prometheus ## the same with more of each kind
	$(BIN)/python -m tests.second_chance $(K8S_OPTIONS) -m long tests/k8s

test-versions: setup ## try the lowest and the newest versions of dependencies that pyproject.toml allows
	$(BIN)/python -m tests.versions

lint: setup ## check format, style, types and the wire contract
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/buf lint proto
	$(BIN)/buf breaking proto --against proto/baseline.binpb

baseline: setup ## make the wire contract of today the one that `make lint` compares with
	$(BIN)/buf build proto -o proto/baseline.binpb

proto: setup ## generate services/ordercast/v1 from proto/
	rm -f services/ordercast/v1/*_pb2*.py services/ordercast/v1/*_pb2*.pyi
	$(BIN)/python -m grpc_tools.protoc -I proto $(PROTOC_PLUGINS:%=--%_out=services) $(PROTO_FILES)

schema: setup ## write what is made from the schema of telemetry: names and their page
	$(BIN)/python -m ordercast.telemetry.schema.generate

dashboards: setup ## write the dashboards of Grafana from deploy/grafana
	$(BIN)/python -m deploy.grafana.generate

helm: setup .venv/.chart ## write what is made for and from helm/ordercast: copies, README, deploy/kustomize, what tests expect
	$(BIN)/python -m deploy.kubernetes.generate
	$(BIN)/python -m tests.helm.expected

sim: setup ## simulate SEEDS=2000 faulty schedules and check every property
	$(BIN)/ordercast sim scalatom --seeds $(SEEDS) --jobs 2

chaos: setup ## kill, pause and partition a real cluster for two minutes, then check that nothing is lost
	$(BIN)/ordercast chaos --seconds 120

bench: setup .venv/.bench ## measure a cluster on this machine beside etcd and NATS, and write docs/benchmarks
	$(BIN)/ordercast bench compare --save docs/benchmarks
	$(BIN)/ordercast bench replay --save docs/benchmarks
	$(BIN)/ordercast bench stages --save docs/benchmarks
	$(BIN)/ordercast bench overload --save docs/benchmarks

simbench: setup ## measure simulated protocol messages per second, on one core
	$(BIN)/ordercast sim scalatom --seeds 200 --jobs 1

mutants: setup ## break the protocol on purpose and see that the simulator notices
	$(BIN)/ordercast sim scalatom --mutants --jobs 2

papers: setup ## print the tables of the papers next to what the machines do
	$(BIN)/ordercast papers scalatom

lock: setup ## rewrite requirements/*.lock (LOCK_OPTIONS=--upgrade for newer versions)
	$(call lock,dev,--group dev)
	$(call lock,telemetry,--extra telemetry --extra kafka --constraint requirements/dev.lock)
	$(call lock,analytics,--extra analytics --extra kafka --constraint requirements/dev.lock)
	$(call lock,kafka-test,--group kafka-test --constraint requirements/dev.lock)
	$(call lock,bench,--extra bench --constraint requirements/dev.lock)
	$(call lock,k8s,--extra k8s --constraint requirements/dev.lock)
	$(call lock,chart,--group chart --constraint requirements/dev.lock)

# $(call lock,name,options): what a node needs, and what the options add
define lock
$(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --extra server $(2) $(LOCK_OPTIONS) --output-file requirements/$(1).lock
endef

clean: ## remove .venv, caches and build leftovers
	rm -rf .venv .venv-kafka .left-out .flakes build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache services/*.egg-info
	find services tests -name __pycache__ -type d -prune -exec rm -rf {} +
