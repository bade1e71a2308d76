"""YARN-ME: memory elasticity in cluster scheduling."""
