# One word per chore. Each line here works without make, too.

.PHONY: help demo test faults load bench-search models lint setup

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: ## Build the manager and show it at work with servers of its own
	tests/setup.sh build
	cargo build --release --bin mcp-manager
	target/release/mcp-manager demo

test: setup ## Install what the tests need and run every one of them
	cargo nextest run --workspace
	cargo test --workspace --doc --quiet

faults: setup ## What happens when a server fails: run the matrix and print its table
	cargo nextest run --test it --no-capture -E 'test(faults::)'

load: ## Measure the manager under load and write the report
	tests/setup.sh load
	cargo build --release --package mcp-manager --package mcpm-loadtest
	target/release/mcpm-loadtest report --gateway target/release/mcp-manager

models: ## Fetch a small embedding model and ONNX Runtime, for search by meaning
	tests/setup.sh models

bench-search: models ## Whether search finds the right tool: recall and rank on three sets of questions
	cargo build --release --package mcpm-bench
	target/release/mcpm-bench search --model tests/.cache/models/minilm

lint: ## Format, clippy, and cargo-deny where it is installed
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	@if cargo deny --version >/dev/null 2>&1; then cargo deny --log-level error check bans licenses sources; \
	else echo "cargo-deny is not installed: licences and banned crates were not checked (cargo install --locked cargo-deny)"; fi

setup: ## Install what the tests need: real MCP clients and servers, nextest
	tests/setup.sh test
