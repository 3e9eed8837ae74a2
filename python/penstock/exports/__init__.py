"""The results of a run in other programs' formats: CSV, qlog, LaTeX, PDF; and a run as one archive.

`run` makes all files of a run, with `tables` (CSV and LaTeX), `qlog` (a log for each connection) and figures of
`plots`; `pack` makes an archive, and reads it.
"""
