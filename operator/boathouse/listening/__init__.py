"""Server sockets that accept connections from any pod, with limits that apply before anything is read."""
