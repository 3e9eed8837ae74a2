"""The tests of Flent by their names, in any world: who sends what, and the series that Flent would have measured.

`tests` has who sends what, `running` measures one discipline, `results` several, and `datafile` writes files of Flent.
Source of the names and of who sends what: Flent 2.3.0's definitions of its tests. Results are written in its format 4,
so that its own command plots them.
"""
