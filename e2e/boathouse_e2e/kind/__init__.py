"""A cluster whose nodes are Docker containers, made by kind.

Where a Docker daemon answers, it is used as it is. Where none does, as root on Debian, the cluster gets one of its own.
It runs in namespaces like a local cluster's (network, mounts, processes), so its bridges, address translation, mounts
and processes end with them, and the machine's own rules are never touched.

The nodes' image is kind's published one where an image registry answers. Elsewhere `node_image` makes one.
"""
