"""Published experiments, run again: which scenarios they are made of, and what they gave."""

from penstock.reproduce.experiments import EXPERIMENTS, Case, Experiment, ExperimentError
from penstock.reproduce.results import Evidence, Outcome, load
from penstock.reproduce.runner import reproduce
from penstock.reproduce.variants import VARIANTS, Variant

__all__ = [
    "EXPERIMENTS",
    "VARIANTS",
    "Case",
    "Evidence",
    "Experiment",
    "ExperimentError",
    "Outcome",
    "Variant",
    "load",
    "reproduce",
]
