"""A cluster of real Kubernetes processes on this machine, without Docker.

With real nodes, all of it runs in namespaces of its own (network, mounts, processes) that one small process holds: its
first process. When that ends, the kernel ends the rest and takes their network devices, routes, rules and mounts with
it; what is left to delete is one veth, one nftables table, the cgroups and a folder. Inside, pods have addresses of
their own and are routed, never bridged, so that replies of services always pass the address translation.

Without real nodes there is only the control plane, as plain processes on loopback ports, and no need of root.
"""
