"""Sockets that anybody in the cluster may connect to: what each costs is bounded before anything is read."""
