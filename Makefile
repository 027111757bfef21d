# The main tasks of the repository. Each first installs what it needs (see `make deps`) and works
# without a terminal. All other tasks use `cargo` and `cargo xtask`.

# An empty environment (env -i, some CI runners) has neither; the shell and cargo need both.
HOME ?= $(shell getent passwd $$(id -u) | cut -d: -f6)
PATH := $(or $(PATH),/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
export HOME PATH

# Runs cargo with a sufficiently new Rust, which it downloads if necessary.
CARGO := scripts/rust.sh cargo

PREFIX ?= /usr/local

.DEFAULT_GOAL := help
.PHONY: help deps build agent test lint demo docs install clean

help: ## print this list
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 12
	@echo
	@echo "make demo uses MEDIA=path... (your own media files), DEMO_SECONDS=n and KEEP=1."

deps: ## install missing system packages (scripts/packages.txt) and Rust
	@scripts/deps.sh build demo test
	@scripts/rust.sh rustc --version

build: ## build target/release/tenuto
	@scripts/deps.sh build
	$(CARGO) build --release --locked --package tenuto

# Statically linked, so that it runs on any Linux of this architecture; and small, because
# `meter run --hosts` copies it to every host.
MUSL := $(shell uname -m)-unknown-linux-musl

agent: ## build the small static agent for any Linux, target/agent/tenuto-agent
	@scripts/deps.sh build agent
	scripts/rust.sh rustup target add $(MUSL)
	$(CARGO) build --profile agent --locked --package tenuto-agent --target $(MUSL)
	install -D -m 755 target/$(MUSL)/agent/tenuto-agent target/agent/tenuto-agent
	@ls -l target/agent/tenuto-agent

test: ## check format, lints and repository rules, and run all tests
	@scripts/deps.sh build demo test
	@$(MAKE) --no-print-directory lint
	@rm -f "$${CARGO_TARGET_DIR:-target}/skipped-tests"
	$(CARGO) test --workspace --locked --no-fail-fast; \
	  status=$$?; scripts/skipped.sh; exit $$status

lint: ## the part of `make test` that runs no test
	scripts/rust.sh scripts/lint.sh

demo: ## serve more viewers than a disk holds, with and without admission (2 min)
	@scripts/deps.sh build demo
	$(CARGO) build --release --locked --package tenuto --package demo
	$(CARGO) run --release --locked --quiet --package demo

docs: ## generate docs/reference/cli.md from the declarations of the commands
	$(CARGO) xtask docs

install: build ## install the program, man pages and completions in PREFIX (/usr/local)
	install -D -m 755 target/release/tenuto "$(DESTDIR)$(PREFIX)/bin/tenuto"
	install -d "$(DESTDIR)$(PREFIX)/share/man/man1"
	target/release/tenuto man > "$(DESTDIR)$(PREFIX)/share/man/man1/tenuto.1"
	sed -n 's/^## tenuto //p' docs/reference/cli.md | while read -r name; do \
	  target/release/tenuto man $$name \
	    > "$(DESTDIR)$(PREFIX)/share/man/man1/tenuto-$$(echo $$name | tr ' ' -).1" || exit 1; done
	install -d "$(DESTDIR)$(PREFIX)/share/bash-completion/completions"
	target/release/tenuto completions bash \
	  > "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/tenuto"

clean: ## remove build outputs
	$(CARGO) clean
