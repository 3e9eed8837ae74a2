# Each target makes itself ready first: a Rust toolchain and Python 3.11 are enough.
.PHONY: demo test bench pictures playground wheel site release nightly verify-twins mutants setup edit

demo:
	tools/setup lab
	.venv/bin/penstock reproduce pink-sat --quick
	.venv/bin/penstock reproduce pink-dsl --quick

test:
	tools/setup tests lab appliances
	tools/test

bench:
	tools/setup bench lab appliances
	.venv/bin/penstock bench

# The pictures and tables of numbers in docs/, from runs.
pictures:
	tools/setup python lab
	.venv/bin/python tools/measure/pictures

# The simulator inside a page, in target/playground: needs `rustup target add wasm32-unknown-unknown`.
playground:
	tools/pack/playground

# The wheel of the lab, in target/wheels, with the playground if it can be built.
wheel:
	tools/setup python lab appliances
	tools/pack/playground || true
	.venv/bin/python tools/pack/wheel

# The documentation as static pages, in target/site, with the playground if it can be built.
site:
	tools/setup python lab
	tools/pack/playground || true
	.venv/bin/python tools/pack/site

# All that a release consists of, in target/release-VERSION: docs/release.md.
release:
	tools/setup python lab appliances
	.venv/bin/python tools/pack/release

# Every slow verification whose inputs have changed, the shortest first: up to 8 hours, resumable. `tools/check/nightly --list` names them.
nightly:
	tools/setup tests lab appliances
	.venv/bin/python tools/check/nightly

# Every compiled algorithm against its readable twin on 10,000 random traces: hours. Writes docs/results/twins.md.
verify-twins:
	tools/setup python lab
	.venv/bin/python tools/verify-twins

# A random sample of mutations of every crate against the tests in Rust: hours, resumable. As root, tests between namespaces are
# among them. Writes docs/results/mutants.md.
mutants:
	tools/mutants/run

# The command `penstock` in .venv and the appliances in target/release: some minutes; `tools/setup` says how many.
setup:
	tools/setup lab appliances

# The command `penstock` for people who change code in Rust: a changed algorithm is built in seconds (CONTRIBUTING.md).
edit:
	tools/setup edit
