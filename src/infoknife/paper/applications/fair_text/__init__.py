"""Fair text classification (section 4.2): features that tell a label and nothing of a private attribute.

The loss is CE(Y) + lambda I(Z; S) (eq:all_loss), or CE(Y) with I(Z; S) kept below a limit.
"""

from infoknife.paper.applications.fair_text.data import CORPORA, Columns, Corpus, Texts, load_corpus
from infoknife.paper.applications.fair_text.model import TextClassifier
from infoknife.paper.applications.fair_text.settings import METHODS, PRESETS, Settings
from infoknife.paper.applications.fair_text.train import Learned, check_corpus, learn, load_model

__all__ = [
    "CORPORA",
    "METHODS",
    "PRESETS",
    "Columns",
    "Corpus",
    "Learned",
    "Settings",
    "TextClassifier",
    "Texts",
    "check_corpus",
    "learn",
    "load_corpus",
    "load_model",
]
