"""The library as a part of other libraries.

Nothing is imported here; each module needs its own library, which is an extra of the package:

- ``infoknife.integrations.scikit_learn``: ``pip install "infoknife[sklearn]"``
- ``infoknife.integrations.torchmetrics``: ``pip install "infoknife[torchmetrics]"``
- ``infoknife.integrations.lightning``: ``pip install "infoknife[lightning]"``
- ``infoknife.integrations.transformers``: ``pip install "infoknife[transformers]"``
- ``infoknife.integrations.tensorboard``: ``pip install "infoknife[tensorboard]"``
- ``infoknife.integrations.knife_py`` reads weights of the paper's published code, and needs nothing.
"""
