"""Access to the API server: client, informers, leader election, events.

`wire`, `views` and `written` have the models of objects, `catalogue` the kinds, `errors` the exceptions. Other
packages use only these and send no requests of their own.
"""
