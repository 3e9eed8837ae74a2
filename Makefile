# Each target makes itself ready first: a Rust toolchain and Python 3.11 are enough.
.PHONY: demo test bench setup

demo: setup
	.venv/bin/penstock reproduce pink-sat --quick
	.venv/bin/penstock reproduce pink-dsl --quick

test: setup
	tools/test

bench:
	tools/setup bench
	.venv/bin/penstock bench

setup:
	tools/setup
