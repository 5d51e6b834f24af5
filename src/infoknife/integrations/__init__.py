"""A ``Regularizer`` in the training loops of others, each in the manner of its house.

Nothing is imported here; each module needs its own library, which is an extra of the package:

- ``infoknife.integrations.lightning``: ``pip install "infoknife[lightning]"``
- ``infoknife.integrations.transformers``: ``pip install "infoknife[transformers]"``
- ``infoknife.integrations.tensorboard``: ``pip install "infoknife[tensorboard]"``
"""
