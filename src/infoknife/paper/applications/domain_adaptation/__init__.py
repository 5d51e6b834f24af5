"""Domain adaptation by disentanglement (section 4.3): labels of one domain, images of another.

An encoder for the class and one for the domain are kept apart by their mutual information in the loss (eq:domaine).
"""

from infoknife.paper.applications.domain_adaptation.data import Domain, Images, check_pair, load_pair
from infoknife.paper.applications.domain_adaptation.model import Adapter
from infoknife.paper.applications.domain_adaptation.settings import METHODS, AdaptationSettings
from infoknife.paper.applications.domain_adaptation.train import adapt, load_model

__all__ = [
    "METHODS",
    "AdaptationSettings",
    "Adapter",
    "Domain",
    "Images",
    "adapt",
    "check_pair",
    "load_model",
    "load_pair",
]
