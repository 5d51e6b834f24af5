"""Measure information and train with it: entropy and mutual information, differentiable, on PyTorch."""

from infoknife._version import __version__

__all__ = ["__version__"]
