# Targets set up what they need on a fresh machine with Rust and Go, and say what they install.

.PHONY: help demo test lint bench soak generate reference chart controlplane

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo: ## records and a protected route, published without a cluster and without an account, and proven by HTTP requests
	@scripts/demo

test: ## all tiers in lanes beside each other, lint in the gaps; ends with a summary (PORTOLAN_REQUIRE, PORTOLAN_TEST_MINUTES)
	@scripts/test

lint: ## format, clippy, rustdoc, layers, generated files
	@scripts/setup
	@scripts/lint

bench: ## the controllers, and the embedded API server against the real one; JSON on standard output
	@scripts/setup build
	@cargo build --release -q -p portolan
	@target/release/portolan bench dns --records 1000
	@target/release/portolan bench dns --records 10000 --only cold,live
	@target/release/portolan bench publish
	@target/release/portolan bench drift
	@scripts/bench-apiserver

soak: ## more histories, attacks, kills and generated inputs; every mend undone once; writes docs/reliability.md (MINUTES, SEED, PARTS)
	@scripts/soak

generate: ## data that is generated from Kubernetes' OpenAPI documents and Go types
	@scripts/setup build
	cargo run -q -p xtask -- generate "$$(tools/controlplane/build.sh)/openapi" "$$(scripts/openapi)"
	cd tools/gotypes && GOFLAGS=-mod=mod go run . > ../../crates/apiserver/builtin/data/gotypes.json
	cd tools/protobuf && GOFLAGS=-mod=mod go run . messages > ../../crates/apiserver/protobuf/data/messages.json
	cd tools/protobuf && GOFLAGS=-mod=mod go run . samples > ../../crates/apiserver/protobuf/tests/data/samples.jsonl

reference: ## docs/reference, the dashboard and the alerts, from the types and tables
	cargo run -q -p xtask -- reference

chart: ## the generated parts of charts/portolan and of docs/installation.md
	cargo run -q -p xtask -- chart

controlplane: ## builds the real etcd, kube-apiserver, kube-controller-manager and kubectl into the cache
	@tools/controlplane/build.sh
