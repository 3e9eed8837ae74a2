# Each target makes itself ready first: a Rust toolchain and Python 3.11 are enough.
.PHONY: demo test bench pictures playground wheel site release nightly verify-twins mutants setup

demo: setup
	.venv/bin/penstock reproduce pink-sat --quick
	.venv/bin/penstock reproduce pink-dsl --quick

test: setup
	tools/test

bench:
	tools/setup bench
	.venv/bin/penstock bench

# The pictures and tables of numbers in docs/, from runs.
pictures: setup
	.venv/bin/python tools/pictures

# The simulator inside a page, in target/playground: needs `rustup target add wasm32-unknown-unknown`.
playground:
	tools/playground

# The wheel of the lab, in target/wheels, with the playground if it can be built.
wheel: setup
	tools/playground || true
	.venv/bin/python tools/wheel

# The documentation as static pages, in target/site, with the playground if it can be built.
site: setup
	tools/playground || true
	.venv/bin/python tools/site

# All that a release consists of, in target/release-VERSION: docs/release.md.
release: setup
	.venv/bin/python tools/release

# Every slow verification whose inputs have changed, the shortest first: up to 8 hours, resumable. `tools/nightly --list` names them.
nightly: setup
	.venv/bin/python tools/nightly

# Every compiled algorithm against its readable twin on 10,000 random traces: hours. Writes docs/twins.md.
verify-twins: setup
	.venv/bin/python tools/verify-twins

# A random sample of mutations of core, sim and net against the tests in Rust: an hour or two, resumable. Writes docs/mutants.md.
mutants:
	tools/mutants/run

setup:
	tools/setup
