"""The soak: the operator alone in a process, under a steady load of all kinds for an hour, must not grow.

`make soak` runs it in full. `python -m tests.soak` starts the operator's process, with a fake API server in its own,
where a crowd of tenants creates and deletes namespaces with objects of all kinds and fates while nodes come and go.

| module | subject |
|---|---|
| `load` | the tenants: a bounded number of namespaces that come, rest and go |
| `endpoint` | what pods send to the operator's progress endpoint, over TLS and with tokens |
| `process` | the operator's process, with its resident memory and its census |
| `counted` | the main module of that process |
| `verdict` | the samples, their windows, and what counts as growth |
"""
