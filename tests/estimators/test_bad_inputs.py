"""One table of what makes no estimator: the error's type, and the argument that its message begins with."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from infoknife import mi
from infoknife.estimators.classes import ClassDifference
from infoknife.estimators.contrastive import MINE, NWJ, SMILE, TUBA, InfoNCE
from infoknife.estimators.critics import Concatenated, Separable
from infoknife.estimators.difference import Difference, JointDifference
from infoknife.estimators.encoder import EncoderDifference, EncoderKernels, EncoderPrior
from infoknife.estimators.variational import CLUB, Adversary, Classifier, CLUBSample, L1Out, Regressor
from tests.estimators.conformance import SMALL

Bad = tuple[Callable[..., object], tuple[Any, ...], dict[str, Any], type[Exception], str]
NETWORKS = ("doe", "doe-logistic", "mine", "nwj", "tuba", "infonce", "smile", "club", "club-sample", "l1out", "vub")
BAD: list[Bad] = [
    # by name
    (mi, ("knive", 2, 2), {}, ValueError, "name is 'knive'; expected one of 'knife'"),
    (mi, ("knife", 2), {}, ValueError, "y_dim is None and y_classes is None"),
    (mi, ("knife", 2, 2), {"y_classes": 2}, ValueError, "y_dim is 2 and y_classes is 2"),
    (mi, ("knife-joint", 2), {"y_classes": 2}, ValueError, "name is 'knife-joint', which does not exist for classes"),
    (mi, ("adv", 2, 2), {}, ValueError, "name is 'adv', which does not exist for a continuous y"),
    (mi, ("mine", 2), {"encoder": "gaussian"}, ValueError, "name is 'mine', which does not exist with encoder="),
    (mi, ("knife", 2), {"encoder": "logistic"}, ValueError, "encoder"),
    (mi, ("knife", 2), {"encoder": "gaussian", "y_classes": 2}, ValueError, "y_classes"),
    *((mi, (name, 2, 2), {"preset": "papers"}, ValueError, "preset") for name in ("knife", "doe", "mine", "club")),
    *((mi, (name, 2, 3), {"colour": "red"}, TypeError, "colour") for name in ("knife", "club", "mine")),
    *((mi, ("knife", value, 2), {}, TypeError, "x_dim") for value in (2.0, "2", True, None)),
    (mi, ("knife", 2, 0), {}, ValueError, "y_dim"),
    (mi, ("doe", 2), {"y_classes": 0}, ValueError, "y_classes"),
    *((mi, (name, 3, 5), {"activation": "gelu"}, ValueError, "activation") for name in ("knife", *NETWORKS)),
    (mi, ("club", 3, 5), {"layer_norm": "no"}, TypeError, "layer_norm"),
    (mi, ("knife", 3, 5), {"activation": "relu"}, ValueError, "activation came for 'knife' in its default form"),
    (mi, ("knife", 3, 5), {"layer_norm": True}, ValueError, "layer_norm came"),
    (mi, ("knife", 3, 5), {"activation": "tanh", "layer_norm": True}, ValueError, "activation and layer_norm came"),
    *(
        (mi, (name, 3), {"y_classes": 4, "activation": "relu"}, ValueError, "activation")
        for name in ("knife", "doe", "doe-logistic", "vub")
    ),
    # differences
    *((kind, (2, 2), {"density": "parzen"}, ValueError, "density") for kind in (Difference, JointDifference)),
    (Difference, (2, 2), {"given": "z"}, ValueError, "given"),
    *((Difference, (2, 2), {"marginal_rate": rate}, ValueError, "marginal_rate") for rate in (0.0, math.nan)),
    (ClassDifference, (2,), {"y_classes": 3, "density": "parzen"}, ValueError, "density"),
    (ClassDifference, (2, 3), {}, ValueError, "y_dim is 3; expected y_classes"),
    (ClassDifference, (2,), {}, ValueError, "y_dim is None and y_classes is None"),
    (EncoderDifference, (3,), {"density": "parzen"}, ValueError, "density"),
    *((kind, (3, 5), {}, ValueError, "y_dim is 5") for kind in (EncoderDifference, EncoderKernels, EncoderPrior)),
    # critics
    *(
        (kind, (2, 2), {option: value}, error, option)
        for kind in (Separable, Concatenated)
        for option in ("hidden", "layers")
        for value, error in ((0, ValueError), (1.5, TypeError))
    ),
    (Separable, (2, 2), {"embedding": 0}, ValueError, "embedding"),
    (NWJ, (2, 2), {"critic": "bilinear"}, ValueError, "critic"),
    (NWJ, (2, 2), {"preset": "best"}, ValueError, "preset"),
    (InfoNCE, (2, 2), {"hidden": 0}, ValueError, "hidden"),
    *((kind, (2, 2), {"pairs": "some"}, ValueError, "pairs") for kind in (NWJ, MINE, TUBA)),
    *((kind, (2, 2), {"pairs": "all"}, TypeError, ".*pairs") for kind in (InfoNCE, SMILE)),
    *((MINE, (2, 2), {"momentum": value}, ValueError, "momentum") for value in (0.0, 1.5)),
    *((SMILE, (2, 2), {"tau": value}, ValueError, "tau") for value in (0.0, math.nan)),
    (SMILE, (2, 2), {"gradient": "dv"}, ValueError, "gradient"),
    # models of the conditional
    *((kind, (2, 2), {"preset": "best"}, ValueError, "preset") for kind in (CLUB, CLUBSample, L1Out, Regressor)),
    *((kind, (2, 2), {"hidden": 0}, ValueError, "hidden") for kind in (CLUB, CLUBSample, L1Out, Classifier)),
    (Regressor, (2, 2), {"hidden": 1.5}, TypeError, "hidden"),
    (Adversary, (3, 2), {}, ValueError, "y_dim is 2; expected y_classes"),
]


def named(bad: Bad) -> str:
    make, arguments, options, *_ = bad
    return f"{make.__qualname__} {' '.join(map(str, (*arguments, *options.items())))}"


@pytest.mark.parametrize("bad", BAD, ids=named)
def test_what_makes_no_estimator_is_refused(bad: Bad) -> None:
    make, arguments, options, error, names = bad
    with pytest.raises(error, match=names if names.startswith(".") else f"^{names}"):
        make(*arguments, **options)


def test_one_row_has_no_negatives() -> None:
    for case in SMALL:
        estimator, (x, y) = case.make(), case.data(2)
        if estimator.negatives:
            for method in (estimator, estimator.loss, estimator.pointwise, estimator.initialize):
                with pytest.raises(ValueError, match=r"^x has 1 row"):
                    method(x[:1], y[:1])
