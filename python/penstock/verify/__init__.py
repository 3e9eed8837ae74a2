"""Compares the simulator with the kernel's TCP over the same paths and queues, with the same measures.

`cases` says what is compared, `lab` makes namespaces with `penstock-emulate` between them, `real` and `simulated` run a
case on either side, `traffic` is the sender and the receiver, `measure` reads both sides' packets, `compare` keeps and
judges, `page` writes the table.
"""
