"""The health of a regularizer for TensorBoard.

It needs TensorBoard: ``pip install "infoknife[tensorboard]"``.
"""

from infoknife.regularizer import Regularizer

try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError as error:
    raise ImportError(
        'infoknife.integrations.tensorboard needs tensorboard; install it with: pip install "infoknife[tensorboard]"'
    ) from error

__all__ = ["RegularizerWriter"]


class RegularizerWriter:
    """Write the numbers of ``health()`` as scalars, and each kind of message once as text.

    Args:
        writer: Where they go.
        tag: What the names start with: ``regularizer/estimate`` and so on.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> from infoknife import KNIFE
        >>> with TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        ...     RegularizerWriter(writer).write(Regularizer(KNIFE(2)))
    """

    def __init__(self, writer: SummaryWriter, tag: str = "regularizer") -> None:
        self.writer, self.tag = writer, tag
        self._written: set[str] = set()

    def write(self, regularizer: Regularizer, step: int | None = None) -> None:
        """Write the present state, at ``step`` or else at the number of inner rounds."""
        health = regularizer.health()
        at = health.steps if step is None else step
        for name, value in health.scalars().items():
            self.writer.add_scalar(f"{self.tag}/{name}", value, at)
        for kind, message in health.findings.items():
            if kind not in self._written:
                self._written.add(kind)
                self.writer.add_text(f"{self.tag}/messages", message, at)
