"""The experiment: a scenario, what varies, what is measured, how often, and how it is drawn; on one machine or many.

`reading` reads the file of an experiment and `model` is what it says; `values` has the grammar of what varies, `paths`
sets a value in a scenario, `adjusting` adds what a command says. `runner` runs it: `work` is one run, `workers` the
processes of this machine, `cluster` those of others, `scripts` the jobs of a cluster without Dask. `until` decides how
many seeds are enough, `estimate` what it will cost. `measures` is the one table of measures, from which `rows`,
`tables` and `statistics` make what `results` stores and `overview` shows. `compare` tells which of several is better.
"""
