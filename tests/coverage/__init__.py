"""Record which test executes which line, and answer from it what to run: `make record-coverage`, `make test-changed`.

| module | subject |
|---|---|
| `contexts.py` | a plugin of pytest: coverage.py knows what each test executes |
| `record.py` | run the tests that are not recorded yet |
| `recording.py` | the recording, a file of SQLite: tests, their seconds, the lines that they execute |
| `sources.py` | functions of a module, and the lines of its earlier versions |
| `changed.py` | the tests that a change concerns |
"""
