"""`boathouse reproduce`: its options, the table of claims and the HTML page with the figures."""
