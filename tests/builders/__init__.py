"""Builders: the objects that tests work on, in one place. Every field that a test does not name has a default.

| module | subject |
|---|---|
| `tasks` | jobs on a folder, run by the code of the task pods, and task pods as processes |
| `task_servers`, `task_hdfs`, `task_outputs`, `task_suspensions` | endpoints, an HDFS, shared outputs, pauses |
| `agents` | agents of clusters, and the daemons of Hadoop that they connect to |
| `clusters` | Hadoop clusters that tests apply to a real API server, and jobs on them |
| `cli` | objects of the API server as the commands get them |
| `conversions`, `conversion_strategies` | what `boathouse convert` reads |
"""
