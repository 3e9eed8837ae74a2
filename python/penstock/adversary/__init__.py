"""The adversary: searches the scenarios in which an algorithm breaks, and makes them small.

`space` says what may vary, `sentence` what counts as broken, over the names of `quantities`; `standing` has the
properties that are always asked. `search` tries scenarios on the processes of sweeps (`trials`), `shrink` makes a
finding small and says what mends it, `breaking` is the whole of it, and `book` runs it for every algorithm.
"""
