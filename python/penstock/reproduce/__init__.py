"""Published experiments: their scenarios, and the results of running them again."""

from penstock.reproduce.base import Case, Experiment
from penstock.reproduce.experiments import EXPERIMENTS, ExperimentError
from penstock.reproduce.results import Evidence, Outcome, load
from penstock.reproduce.runner import reproduce
from penstock.reproduce.series import Series
from penstock.reproduce.settings import Listed, Setting
from penstock.reproduce.sweep import Sweep
from penstock.reproduce.tempest import Tempest, Test
from penstock.reproduce.variants import Variant

__all__ = [
    "EXPERIMENTS",
    "Case",
    "Evidence",
    "Experiment",
    "ExperimentError",
    "Listed",
    "Outcome",
    "Series",
    "Setting",
    "Sweep",
    "Tempest",
    "Test",
    "Variant",
    "load",
    "reproduce",
]
