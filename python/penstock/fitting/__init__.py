"""Inference of what a document does not say: parameters of its set-up, fitted to all numbers of its tables at once.

`declared` reads `fit.toml` in the folder of an experiment: parameters with their ranges, and numbers. `evaluate` runs
the experiment with values of these parameters. `surface` predicts the numbers between the runs, `likelihood` says
how well values explain a table and how sharply it chooses them, `fit` brings these together, `recover` tests them with
tables whose values are known, and `page` writes.
"""

from penstock.fitting.declared import Fit, declared
from penstock.fitting.fit import Fitted, fitted
from penstock.fitting.recover import Recovery, recovered

__all__ = ["Fit", "Fitted", "Recovery", "declared", "fitted", "recovered"]
