"""A candidate for densities that are constant on ellipsoids: balls, shells, and tails that have a covariance."""

import math
from typing import final

import torch
from torch import Tensor

from infoknife.measure.candidates.base import Candidate, Fitted
from infoknife.measure.coordinates import by_quantiles, standard
from infoknife.measure.question import Question, Sample
from infoknife.mixtures import precision_factor

MIN_ROWS = 100  # training rows


@final
class Elliptical(Candidate):
    r"""A density of the distance from the centre alone, $q(u) = \lvert L \rvert\, q_r(r) / (S_d\, r^{d-1})$.

    With $r = \lVert L(u - m) \rVert$, and $S_d$ the surface of the unit sphere. The density of r is learned in its
    normal coordinates, so that it may end sharply.
    """

    name = "elliptical"

    def supports(self, data: Sample, question: Question) -> bool:
        """Entropy of two continuous columns or more, nothing given."""
        alone = not question.condition and question.reduced is None and not question.target.discrete
        return alone and len(question.target.continuous) > 1 and len(data) >= MIN_ROWS

    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        """Take centre and covariance of the training rows, and the quantiles of their distances."""
        return _EllipticalFitted(data, question)


@final
class _EllipticalFitted(Fitted):
    def __init__(self, data: Sample, question: Question) -> None:
        d = data.continuous.shape[1]
        super().__init__(question, d * (d + 3) // 2)
        self.standard = standard(question, data.continuous)
        u, _ = self.standard(data.continuous)
        self.centre = u.mean(0)
        self.factor = precision_factor(torch.cov(u.T, correction=0)[None])[0]
        self.radial = by_quantiles(self._radius(u))

    def _radius(self, u: Tensor) -> Tensor:
        return ((u - self.centre) @ self.factor.T).norm(dim=1, keepdim=True)  # N 1

    def _terms(self, data: Sample) -> Tensor:
        u, log_slopes = self.standard(data.continuous)
        d, r = u.shape[1], self._radius(u)
        v, log_slope = self.radial(r)
        log_surface = math.log(2) + 0.5 * d * math.log(math.pi) - math.lgamma(d / 2)
        log_radial = (log_slope - 0.5 * (v.square() + math.log(2 * math.pi))).squeeze(1)
        log_det = self.factor.diagonal().log().sum()
        log_prob = log_radial - log_surface - (d - 1) * r.squeeze(1).clamp_min(1e-300).log() + log_det
        full = log_prob + log_slopes.sum(1)
        return torch.stack([full, torch.zeros_like(full)])
