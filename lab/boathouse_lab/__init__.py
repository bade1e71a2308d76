"""Laboratory: the experiments of the papers, as `boathouse reproduce` runs them. The distribution `boathouse-lab`."""
