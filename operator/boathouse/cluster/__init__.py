"""The only package that speaks to the API server: client, informers, leader election, recorded events.

``wire`` and ``records`` hold the shapes, ``catalogue`` the kinds, ``errors`` the tree of exceptions. Everything above
sees values and exceptions of this package, and no HTTP.
"""
