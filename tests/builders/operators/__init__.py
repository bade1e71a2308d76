"""The operator and its parts, as tests run them: in virtual time, or against the fake API server of `tests/wire`.

In virtual time, where the test answers each request:

| module | subject |
|---|---|
| `desks` | a scheduler whose requests to the API server the test answers |
| `applications` | applications on a desk, whose drivers create their executors |
| `suspensions` | running tasks on a desk, which are suspended, resumed and resized |
| `pod_tables` | the scheduler's table of pods alone, with its invariants |

Against the fake API server:

| module | subject |
|---|---|
| `schedulers` | a scheduler with its watches, for plain tasks |
| `running_tasks` | a full node of running tasks, which are suspended and resumed |
| `elastic_clusters` | a scheduler for Hadoop clusters that grow and shrink |
| `leaders` | a leader with kinds, which a test can kill; the next one follows |
| `mrjobs`, `hadoop_jobs`, `sparkapps`, `mrclusters` | custom resources of a kind, their operator, and kubelets |
| `crowds`, `remains` | tenants of all kinds in many namespaces, and what may be kept of them when they are gone |
| `endpoints`, `agents` | the progress endpoint, with task pods and with the agents of clusters |
| `informers` | an informer, and a log of its changes |
"""
