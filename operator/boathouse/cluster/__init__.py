"""Access to the API server: other packages use only this one, and send no requests of their own."""
