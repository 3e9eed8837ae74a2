"""Searches, within the set-up of a document, the run that contradicts a claim of the ledger most.

`space.toml` and `space.py` say what may vary: what a document does not say. `judge.py` runs an experiment with other
values and judges its claims, `search.py` searches with the engine of `penstock.adversary`, and `written.py` writes what
was found into the file that the ledger reads, and into its page.
"""
