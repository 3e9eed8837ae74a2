"""Searches, within the set-up of a document, the run that contradicts a claim of the ledger most.

`space.py` says what may vary: what a document does not say (`reproduce/open.toml`). `judge.py` runs an experiment with
other values and judges its claims, `search.py` searches with the engine of `penstock.adversary`, and `again.py` repeats
what was found.
"""
