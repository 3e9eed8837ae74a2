"""Published experiments: one folder for each, found by its `experiment.toml` and listed nowhere else.

`penstock.reproduce.folder` says what a folder holds, and docs/extending.md how to add one. What several experiments
of one document share is in `_shared`.
"""
