"""A term in the loss of an encoder, and what it knows of itself if it is an estimator's."""

from typing import Any

from torch import nn

from infoknife import Regularizer


class Term(nn.Module):
    """A term for a loss; one with an estimator has it in the attribute ``regularizer``."""

    def information(self) -> float | None:
        """Return the running estimate of the information in nats, on rows not learned from; None if there is none."""
        return None if self._found is None else self._found.estimate

    def health(self) -> dict[str, float]:
        """Return the numbers of the regularizer's health, each under ``regularizer/``, if there is one."""
        if self._found is None:
            return {}
        return {f"regularizer/{name}": value for name, value in self._found.health().scalars().items()}

    def messages(self) -> list[str]:
        """Return what the regularizer's health has to say in words."""
        return [] if self._found is None else list(self._found.health().messages)

    @property
    def _found(self) -> Regularizer | None:
        found: Any = getattr(self, "regularizer", None)
        return found if isinstance(found, Regularizer) else None
