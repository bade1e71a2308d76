"""Builders: the objects that tests work on, in one place. Every field that a test does not name has a default.

| modules | subject |
|---|---|
| `manifests`, `observed_pods`, `crds` | Kubernetes objects: manifests, and as the operator decodes them; schemas |
| `mrjobs`, `sparkapps`, `mrclusters` | the custom resources, their models, and what the services of a kind need |
| `frame`, `mrjob_reconciler` | the reconcilers' frame, and the reconciler of MRJobs, with an API server of one object |
| `operators` | the operator and its parts, alone or against the fake API server |
| `simulated_cluster`, `simulated_hadoop`, `simulated_hadoop_job` | Hadoop clusters and jobs that fail at any point |
| `clusters` | Hadoop clusters that tests apply to a real API server, and jobs on them |
| `core`, `core_*` | nodes, classes, tasks and shells of the scheduling core; more for each policy |
| `simulations`, `reproductions` | workloads and runs of the simulator; claims and results of the papers' studies |
| `tasks`, `task_*` | jobs on a folder, task pods as processes, endpoints, HDFS, shared outputs, pauses |
| `agents` | agents of clusters, and the daemons of Hadoop that they connect to |
| `cli`, `conversions`, `conversion_strategies` | what the commands get, and what `boathouse convert` reads |
| `clocks`, `observers`, `scrapes`, `kubelet_metrics`, `bombs`, `differences`, `reviewed` | small tools |
"""
