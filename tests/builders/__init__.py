"""Builders: the objects that tests work on, in one place. Every field that a test does not name has a default.

| module | subject |
|---|---|
| `manifests` | Kubernetes objects: as manifests, and as the operator decodes them |
| `operators` | the parts of the operator, alone or against the fake API server |
| `tasks` | jobs on a folder, run by the code of the task pods, and task pods as processes |
| `task_servers`, `task_hdfs`, `task_outputs`, `task_suspensions` | endpoints, HDFS, shared outputs, pauses |
| `agents` | agents of clusters, and the daemons of Hadoop that they connect to |
| `cli` | objects of the API server as the commands get them |
| `conversions`, `conversion_strategies` | what `boathouse convert` reads |
"""
