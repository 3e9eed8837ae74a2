"""The tests of Flent by their names, in the simulator: who sends what, and the series that Flent would have measured.

Source of the names and of who sends what: Flent 2.3.0's definitions of its tests. Results are written in its format 4,
so that its own command plots them.
"""

from penstock.flent.datafile import contents, file_name
from penstock.flent.running import Measured, Setup, measure, scenario
from penstock.flent.tests import NAMES, Test, find

__all__ = ["NAMES", "Measured", "Setup", "Test", "contents", "file_name", "find", "measure", "scenario"]
