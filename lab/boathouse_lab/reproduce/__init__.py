"""Reproducing papers: studies run simulations and say, claim by claim, what the paper has and what we have.

`claim` and `figures` are what a study finds, `study` is how it runs, `studies` lists them. Everything here is pure but
for the processes that `study.Runner` spreads simulations over; drawing and printing are the command line's.
"""
