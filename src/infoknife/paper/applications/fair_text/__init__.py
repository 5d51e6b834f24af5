"""Fair text classification (section 4.2): features that tell a label and nothing of a private attribute.

The loss is CE(Y) + lambda I(Z; S) (eq:all_loss), or CE(Y) with I(Z; S) kept below a limit.
"""

from infoknife.paper.applications.fair_text.data import CORPORA, Corpus, CorpusColumns, Texts, load_corpus, synthetic
from infoknife.paper.applications.fair_text.model import TextClassifier
from infoknife.paper.applications.fair_text.settings import METHODS, FairTextSettings
from infoknife.paper.applications.fair_text.train import check_corpus, corpus_of, learn, load_model

__all__ = [
    "CORPORA",
    "METHODS",
    "Corpus",
    "CorpusColumns",
    "FairTextSettings",
    "TextClassifier",
    "Texts",
    "check_corpus",
    "corpus_of",
    "learn",
    "load_corpus",
    "load_model",
    "synthetic",
]
