"""The operator and its parts, as tests run them.

| module | subject |
|---|---|
| `desks` | a scheduler whose requests to the API server the test answers itself, in virtual time |
| `applications` | applications on a desk, whose drivers create their executors |
| `pod_tables` | the scheduler's table of pods alone, with its invariants |
"""
