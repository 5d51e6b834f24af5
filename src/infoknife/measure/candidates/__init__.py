"""Densities that a measurement may choose from, the cheap ones first."""
