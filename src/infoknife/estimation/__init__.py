"""Entropies and mutual information of data, measured on rows that nothing was fitted to, with their uncertainty."""
