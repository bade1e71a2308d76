"""Hadoop clusters as other kinds see them, without a kind."""
