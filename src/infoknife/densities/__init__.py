"""Densities: learnable, conditional or not, each its own entropy estimator."""

from infoknife.densities.autoregressive import Autoregressive
from infoknife.densities.base import Density
from infoknife.densities.flow import Flow
from infoknife.densities.knife import KNIFE
from infoknife.densities.location_scale import Gaussian, Logistic
from infoknife.densities.parzen import Parzen, Schraudolph

__all__ = ["KNIFE", "Autoregressive", "Density", "Flow", "Gaussian", "Logistic", "Parzen", "Schraudolph"]
