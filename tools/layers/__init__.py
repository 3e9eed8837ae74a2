"""Checks that the code keeps the layers of `tools/layers.toml`; `tools/check-layers` is the command.

`law` reads the tables. `rust` and `imports` find which module knows which, in Rust and in Python; `graph` finds circles
and edges that no table allows. `crates` checks the dependencies and the lints of crates, `lengths` the sizes of
functions and files, `page` the table of docs/architecture.md. `api` lists what a crate makes public, for
`tools/public-api`.
"""
