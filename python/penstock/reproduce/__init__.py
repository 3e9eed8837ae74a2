"""Published experiments, run again: which scenarios they are made of, and what they gave."""

from penstock.reproduce.experiments import EXPERIMENTS, Case, Experiment, ExperimentError
from penstock.reproduce.results import Evidence, Outcome, load
from penstock.reproduce.runner import reproduce

__all__ = ["EXPERIMENTS", "Case", "Evidence", "Experiment", "ExperimentError", "Outcome", "load", "reproduce"]
