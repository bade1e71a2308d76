"""The board: what profiles are worth on many workloads, against fair, kube-scheduler's order and full knowledge.

| module | what |
|---|---|
| `mix` | MapReduce jobs of the FB-2009 trace and Spark applications, at a given load |
| `draws` | these, and other jobs, as workloads of the simulator |
| `rows` | the workloads of the board |
| `columns` | the profiles, and kube-scheduler's order |
| `parts` | the profile `boathouse` without one of its parts |
| `demand`, `search`, `knowing` | what jobs ask for; schedulers with full knowledge, and a bound |
| `cases`, `plan`, `results` | one simulation, which there are, and the file of those that have ended |
| `summary`, `page` | ratios with their intervals; the page and its picture |
"""
