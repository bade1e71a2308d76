"""Plant faults in the code and see whether a test fails: `make test-mutations`.

| module | subject |
|---|---|
| `operators.py` | what can be changed in a module: operators of mutmut and two of our own |
| `faults.py` | choose the faults of a package, and read `planted.toml`, those chosen by hand |
| `copies.py` | copies of the checkout, with an interpreter that imports from them |
| `worker.py` | the process in a copy that forks for each run of tests |
| `plugin.py` | the plugin of pytest in such a run: the chosen tests, in order, within their limits |
| `running.py` | run the tests of each fault, and keep the results |
| `page.py` | the table, the lists of survivors, `docs/mutations.md` with `reasons.toml` |
"""
