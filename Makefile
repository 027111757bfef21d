# The main tasks of the repository. Each first installs what it needs (see `make deps`) and works
# without a terminal. All other tasks use `cargo` and `cargo xtask`.

# An empty environment (env -i, some CI runners) has neither; the shell and cargo need both.
HOME ?= $(shell getent passwd $$(id -u) | cut -d: -f6)
PATH := $(or $(PATH),/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
export HOME PATH

# Runs cargo with a sufficiently new Rust, which it downloads if necessary.
CARGO := scripts/rust.sh cargo

PREFIX ?= /usr/local

# Where cargo writes, and the program that `make build` makes.
TARGET := $(or $(CARGO_TARGET_DIR),target)
PROGRAM := $(TARGET)/release/tenuto

.DEFAULT_GOAL := help
.PHONY: help deps build agent test lint deny demo cluster docs install uninstall deb static image clean

help: ## print this list
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 12
	@echo
	@echo "make demo uses MEDIA=path... (your own media files), DEMO_SECONDS=n and KEEP=1,"
	@echo "make cluster CLUSTER_SECONDS=n, CLUSTER_LOAD=percent, CLUSTER_FULL=minutes and KEEP=1."

deps: ## install missing system packages (scripts/packages.txt), the console's, and Rust
	@scripts/deps.sh build demo test
	@scripts/console.sh
	@scripts/rust.sh rustc --version

build: ## build target/release/tenuto (the first time: minutes)
	@scripts/deps.sh build
	@scripts/console.sh
	$(CARGO) build --release --locked --package tenuto
	@scripts/symbols.sh $(PROGRAM)
	@ls -l $(PROGRAM)

# Statically linked, so that it runs on any Linux of this architecture; and small, because
# `--hosts` copies it to every host.
MUSL := $(shell uname -m)-unknown-linux-musl

agent: ## build the small static agent for any Linux, target/agent/tenuto-agent
	@scripts/deps.sh build agent
	scripts/rust.sh rustup target add $(MUSL)
	$(CARGO) build --profile agent --locked --package tenuto-agent --target $(MUSL)
	install -D -m 755 $(TARGET)/$(MUSL)/agent/tenuto-agent $(TARGET)/agent/tenuto-agent
	@ls -l $(TARGET)/agent/tenuto-agent

test: ## check format, lints and repository rules, and run all tests
	@scripts/deps.sh build demo test
	@scripts/console.sh
	@$(MAKE) --no-print-directory lint
	scripts/rust.sh scripts/test.sh

lint: ## the part of `make test` that runs no test
	scripts/rust.sh scripts/lint.sh

deny: ## check licences, sources and known weaknesses of all dependencies (network)
	@$(CARGO) deny --version || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check licenses bans sources
	$(CARGO) deny check advisories

demo: ## serve more viewers than a disk holds, with and without admission (4 min)
	@scripts/deps.sh build demo
	@scripts/console.sh
	$(CARGO) build --release --locked --package tenuto --package demo
	$(CARGO) run --release --locked --quiet --package demo

cluster: ## five nodes, two directors, etcd and a bucket on this machine, and the loss of each (8 min)
	@scripts/deps.sh build demo cluster
	@scripts/console.sh
	$(CARGO) build --release --locked --package tenuto --package demo
	$(CARGO) run --release --locked --quiet --package demo -- cluster

docs: ## generate docs/reference/cli.md from the declarations of the commands
	$(CARGO) xtask docs

install: ## install what `make build` built in PREFIX (/usr/local)
	@scripts/install.sh $(PROGRAM) "$(PREFIX)" "$(DESTDIR)"

uninstall: ## remove what `make install` installed in PREFIX
	@scripts/install.sh --remove "$(PREFIX)" "$(DESTDIR)"

# Each of these tries its result in a root of its own before it reports it.
deb: build ## make and try a Debian package, dist/tenuto_VERSION_ARCH.deb
	@scripts/deps.sh package
	packaging/deb.sh $(PROGRAM)

static: ## make and try one static program for any Linux, dist/tenuto-VERSION-ARCH-static
	@scripts/deps.sh build agent
	@scripts/console.sh
	scripts/rust.sh rustup target add $(MUSL)
	$(CARGO) build --release --locked --package tenuto --target $(MUSL)
	@scripts/symbols.sh $(TARGET)/$(MUSL)/release/tenuto
	packaging/static.sh $(TARGET)/$(MUSL)/release/tenuto

image: static ## make and try a container image, dist/tenuto-VERSION-ARCH-oci.tar
	@scripts/deps.sh package
	packaging/image.sh

clean: ## remove build outputs
	$(CARGO) clean
	rm -rf dist
