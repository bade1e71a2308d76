"""Builders: the objects that tests work on, in one place. Every field that a test does not name has a default.

| module | subject |
|---|---|
| `manifests` | Kubernetes objects: as manifests, and as the operator decodes them |
| `operators` | the operator and its parts, alone or against the fake API server |
"""
