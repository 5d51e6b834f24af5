"""The bottleneck over a pretrained encoder, as a model of Hugging Face's kind: texts as tokens, layers, the network.

The lower layers of an encoder may stay as they are: their states are computed once, and given to the upper ones.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, layer_norm, mse_loss
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel
from transformers.utils.generic import ModelOutput

from infoknife import Regularizer, distributed, mi
from infoknife.paper.applications.ib_text.data import TextPairs
from infoknife.paper.applications.pretrained import encoder_of, located
from infoknife.paper.applications.run import evaluating

BLOCK = 64  # rows that are read at once
SORTED = 8  # batches that are cut from rows sorted by length
TOLERANCE = 1e-4  # of states that must be the same
LOWEST, HIGHEST = -12.0, 4.0  # of the log-variances
CLOSED = ("vub", "knife", "doe")  # estimators that know the posterior's entropy; the others see pairs (z, features)


# texts as tokens


class TokenRows(NamedTuple):
    """Pairs of texts, ready for the model."""

    columns: dict[str, list[Tensor]]  # by the names that the model takes, a tensor (L, ...) for each pair
    y: Tensor  # their labels
    truncated: int  # pairs that were longer than the model takes

    @property
    def lengths(self) -> Tensor:
        """Tokens of each pair, (N,)."""
        return torch.tensor([len(tokens) for tokens in next(iter(self.columns.values()))])

    def batch(self, rows: Tensor, device: torch.device) -> dict[str, Tensor]:
        """Return some rows, filled up to the length of the longest, with their mask."""
        chosen = {name: [column[row] for row in rows.tolist()] for name, column in self.columns.items()}
        filled = {name: pad_sequence(column, batch_first=True).to(device) for name, column in chosen.items()}
        lengths = torch.tensor([len(tokens) for tokens in next(iter(chosen.values()))], device=device)
        width = next(iter(filled.values())).shape[1]
        return filled | {"attention_mask": (torch.arange(width, device=device) < lengths[:, None]).long()}


def read(pairs: TextPairs, tokenizer: Any, length: int) -> TokenRows:
    """Turn texts into tokens, at most ``length`` of a pair; what is longer is cut, and counted."""
    texts = (list(pairs.first), *(() if pairs.second is None else (list(pairs.second),)))
    whole = tokenizer(*texts, add_special_tokens=True, truncation=False, verbose=False)["input_ids"]
    found = tokenizer(*texts, truncation=True, max_length=length)
    columns = {
        name: [torch.tensor(row) for row in found[name]] for name in ("input_ids", "token_type_ids") if name in found
    }
    of_texts = (found.sequence_ids(row) for row in range(len(pairs)))  # 0, 1, or None for neither
    columns["segments"] = [torch.tensor([-1 if text is None else text for text in own]) for own in of_texts]
    return TokenRows(columns, pairs.y, sum(len(row) > length for row in whole))


@torch.no_grad()
def with_lower_states(rows: TokenRows, encoder: Any, layers: int, device: torch.device) -> TokenRows:
    """Put in place of the tokens what the lower layers, which do not learn, make of them."""
    states: list[Tensor] = [torch.empty(0)] * len(rows.y)
    lengths = rows.lengths
    with evaluating(encoder):
        for part in lengths.argsort().split(BLOCK):
            batch = rows.batch(part, device)
            del batch["segments"]
            found = lower_states(encoder, layers, **batch).cpu()
            for row, own in zip(part.tolist(), found, strict=True):
                states[row] = own[: int(lengths[row])].clone()
    return rows._replace(columns={"states": states, "segments": rows.columns["segments"]})


def batches(lengths: Tensor, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Cut rows of so many tokens (N,) into random batches of like length, in random order; the last may be smaller."""
    order = torch.randperm(len(lengths), generator=generator)
    blocks = [block[lengths[block].argsort(stable=True)] for block in order.split(SORTED * size)]
    parts = [part for block in blocks for part in block.split(size)]
    for i in torch.randperm(len(parts), generator=generator).tolist():
        yield parts[i]


# layers that stay as they are


class PassThrough(nn.Module):
    """In place of the embeddings: returns what is given."""

    def forward(self, codes: Any = None, inputs_embeds: Tensor | None = None, *_: Any, **__: Any) -> Tensor:
        """Return ``inputs_embeds``, by name or as the second argument."""
        assert inputs_embeds is not None
        return inputs_embeds


def freeze(encoder: nn.Module, layers: int) -> None:
    """Let the embeddings and all but the uppermost layers of an encoder of Hugging Face's kind stay as they are."""
    holder, name = _list_of_layers(encoder)
    whole = getattr(holder, name)
    if layers > len(whole):
        raise ValueError(f"layers is {layers}; expected at most {len(whole)}, as many as the encoder has")
    encoder.requires_grad_(False)
    for layer in whole[len(whole) - layers :]:
        layer.requires_grad_(True)


@contextmanager
def upper_only(encoder: nn.Module, layers: int) -> Iterator[None]:
    """Let the encoder be its uppermost layers alone, which take ``inputs_embeds``, inside."""
    holder, name = _list_of_layers(encoder)
    whole, embeddings = getattr(holder, name), encoder.embeddings
    setattr(holder, name, whole[len(whole) - layers :])
    encoder.embeddings = PassThrough()
    try:
        yield
    finally:
        setattr(holder, name, whole)
        encoder.embeddings = embeddings


@torch.no_grad()
def lower_states(encoder: nn.Module, layers: int, **inputs: Tensor) -> Tensor:
    """Return the states (N, L, H) that the uppermost layers take."""
    return encoder(**inputs, output_hidden_states=True).hidden_states[-1 - layers]


@torch.no_grad()
def can_split(encoder: nn.Module, layers: int) -> bool:
    """Whether the lower states and the upper layers give what the whole encoder gives: it is tried."""
    device = next(encoder.parameters()).device
    inputs = {"input_ids": torch.tensor([[1, 2, 3]]), "attention_mask": torch.tensor([[1, 1, 0]])}
    inputs = {key: value.to(device) for key, value in inputs.items()}
    with evaluating(encoder):
        try:
            states = lower_states(encoder, layers, **inputs)
            with upper_only(encoder, layers):
                found = encoder(inputs_embeds=states, attention_mask=inputs["attention_mask"]).last_hidden_state
            return torch.allclose(found[:, :2], encoder(**inputs).last_hidden_state[:, :2], atol=TOLERANCE)
        except (AssertionError, AttributeError, RuntimeError, TypeError, ValueError):  # it has no such parts
            return False


def _list_of_layers(encoder: nn.Module) -> tuple[nn.Module, str]:
    """The module that holds the list of layers, and its name there."""
    count = getattr(encoder.config, "num_hidden_layers", None)
    for path, module in encoder.named_modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            parent, _, name = path.rpartition(".")
            return encoder.get_submodule(parent), name
    raise ValueError(
        f"layers is set, but {type(encoder).__name__} has no list of {count} layers; leave layers out, so that the "
        "whole encoder learns"
    )


# the compression term, and the network


class Terms(NamedTuple):
    """What a batch adds to the loss."""

    information: Tensor  # the estimate of I(Z; X) in nats; its gradient reaches the encoder alone
    estimator: Tensor  # the estimator's own loss; its gradient reaches the estimator alone


@final
class Compression(nn.Module):
    r"""$I(Z; X)$ of ``eq:bottleneck`` by any estimator, which learns in the same step (joint update).

    Given the posterior of z, $h(Z \mid X)$ is in closed form and a density estimates $h(Z)$. The critics and CLUB look
    at pairs of z and the features of the text instead.

    It takes z (N, K) and features of texts; ``options`` are those of ``mi``, the seed is that of the estimator's start.

    Examples:
        >>> import torch
        >>> compression = Compression("vub", 1, 4)
        >>> posterior = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], requires_grad=True)  # means, then log-variances
        >>> compression(posterior[:, :1], posterior, torch.zeros(2, 4)).information.item()
        0.5
    """

    def __init__(
        self, method: str, dim: int, features: int, options: Mapping[str, Any] | None = None, seed: int = 0
    ) -> None:
        super().__init__()
        self.closed = method in CLOSED
        how: dict[str, Any] = {"encoder": "gaussian"} if self.closed else {"y_dim": features}
        estimator = mi(method, dim, **how, **(options or {}))
        self.regularizer = Regularizer(estimator, mode="joint", warn=False, seed=seed)

    def forward(self, z: Tensor, posterior: Tensor, features: Tensor) -> Terms:
        """Return the terms of a batch."""
        s = posterior if self.closed else features
        information: Tensor = self.regularizer(z, s)  # by the estimator as it was before these rows
        return Terms(information, self.regularizer.loss(z, s))

    def parameter_groups(self, lr: float | None) -> list[dict[str, Any]]:
        """Return the estimator's parameters for an optimiser, with the rate that suits them if none is given."""
        estimator: Any = self.regularizer.estimator
        groups: list[dict[str, Any]] = estimator.parameter_groups(estimator.rate if lr is None else lr)
        return [group for group in groups if group["params"]]


@final
class BottleneckConfig(PretrainedConfig):  # type: ignore[no-untyped-call]
    r"""What a bottleneck is made of.

    The features of a ``"pair"`` of texts are the mean q of the states, and distances and products of the texts' own
    means u and v: $(q, |u - v|, u v) / 2$, each of q, u and v standardised.
    """

    model_type = "infoknife-bottleneck"
    keys_to_ignore_at_inference = ["mean", "log_variance", "information"]  # noqa: RUF012, predictions are the logits

    def __init__(
        self,
        encoder: Mapping[str, Any] | None = None,  # the configuration of the encoder
        method: str = "knife",  # "plain": a head on the features; "none": no term; or what Compression knows
        bottleneck: int = 144,  # dimension K of z
        samples: int = 5,  # of the posterior for each text, in training
        noise: float = 0.5,  # standard deviation of the posterior before training
        weight: float = 1e-2,  # $\lambda$
        ramp_steps: int = 0,  # batches over which $\lambda$ rises from zero
        layers: int | None = None,  # upper layers of the encoder that learn; all if None
        pooling: str = "mean",  # what of the states are the features: their "mean", the "first", or those of a "pair"
        dropout: float = 0.0,  # of the encoder
        shift: float = 0.0,  # regression: the mean of the targets
        scale: float = 1.0,  # regression: their standard deviation, in which the loss is measured
        estimator: Mapping[str, Any] | None = None,  # options of mi
        seed: int = 0,  # of the estimator's start
        **others: Any,  # num_labels, id2label, problem_type and what else Hugging Face's configurations take
    ) -> None:
        self.encoder = dict(encoder or {})
        self.method, self.bottleneck, self.samples, self.noise = method, bottleneck, samples, noise
        self.weight, self.ramp_steps, self.layers, self.pooling = weight, ramp_steps, layers, pooling
        self.dropout, self.shift, self.scale = dropout, shift, scale
        self.estimator, self.seed = dict(estimator or {}), seed
        super().__init__(**others)


@dataclass
class BottleneckOutput(ModelOutput):
    """What the model gives."""

    loss: Tensor | None = None  # to be minimised, if labels were given
    logits: Tensor | None = None  # of classes (N, C), or the values (N, 1) of a regression in the units of its targets
    mean: Tensor | None = None  # of the posterior (N, K); None without a bottleneck
    log_variance: Tensor | None = None  # of the posterior (N, K)
    information: Tensor | None = None  # the estimate of I(Z; X) in nats, in training


@final
class Bottleneck(PreTrainedModel):
    r"""An encoder, the posterior $z \sim \mathcal N(\mu(x), \mathrm{diag}\, \sigma^2(x))$, and a linear head.

    In training the loss is ``eq:bottleneck``: the head's cross-entropy or squared error over samples of z, which bounds
    $-I(Z; Y)$, plus $\lambda\, I(Z; X)$ by ``method``, plus the estimator's own loss, so that one optimiser moves all
    (joint update). In evaluation z is its mean. With ``method="none"`` there is no term, and with ``method="plain"`` no
    bottleneck either: the head sees the encoder's features.

    Mean and variance are networks of widths $(3 H + K) / 4$ and $(H + K) / 2$ for an encoder of width H
    (``tab:architecture_vibert``).
    """

    config_class = BottleneckConfig
    base_model_prefix = "bottleneck"
    accepts_loss_kwargs = False  # so that Trainer divides the loss by the batches that it gathers
    calls: Tensor

    def __init__(self, config: BottleneckConfig) -> None:
        super().__init__(config)
        make: Any = AutoModel.from_config
        self.encoder = make(AutoConfig.for_model(**config.encoder))
        self._prepare()
        H, K = int(self.encoder.config.hidden_size), config.bottleneck
        F = 3 * H if config.pooling == "pair" else H
        self.plain, self.compression = config.method == "plain", None
        if not self.plain:
            self.mean, self.log_variance = _mlp(F, H, K), _mlp(F, H, K)
            if config.method != "none":
                self.compression = Compression(config.method, K, F, config.estimator, config.seed)
        self.head = nn.Linear(F if self.plain else K, int(config.num_labels or 2))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))  # batches that were trained on
        self.post_init()  # type: ignore[no-untyped-call]

    @classmethod
    def over(cls, name: str, **options: Any) -> Self:
        """Put a new bottleneck over a pretrained encoder: ``"minilm"``, a folder, or a name on the hub.

        The options are those of ``BottleneckConfig``, with ``num_labels`` and, for numbers,
        ``problem_type="regression"``.
        """
        encoder = encoder_of(name)
        config = BottleneckConfig(encoder=encoder.config.to_dict(), **options)
        config.encoder_name = Path(located(name)).name if name != "minilm" else "all-MiniLM-L6-v2"
        model = cls(config)
        model.encoder = encoder
        model._prepare()
        if not model.plain:
            *_, last = model.log_variance.parameters()
            nn.init.constant_(last, 2 * math.log(config.noise))  # a bias; the weights are small
        return model

    def forward(
        self,
        input_ids: Tensor | None = None,  # codes (N, L)
        attention_mask: Tensor | None = None,  # which of them are text (N, L)
        token_type_ids: Tensor | None = None,  # which text they belong to (N, L)
        labels: Tensor | None = None,  # classes (N,) int64, or values (N,)
        states: Tensor | None = None,  # instead of codes, what layers that do not learn have made of them (N, L, H)
        segments: Tensor | None = None,  # which text of a pair they belong to, 0 or 1; token_type_ids if not given
        **_: Any,
    ) -> BottleneckOutput:
        """Classify texts, or return their values; with labels also the loss."""
        features = self.features(input_ids, attention_mask, token_type_ids, states, segments)
        if self.plain:
            logits = self.head(features)
            return BottleneckOutput(self._task_loss(logits[None], labels), self._in_units(logits))
        mean, log_variance = self.mean(features), self.log_variance(features).clamp(LOWEST, HIGHEST)
        z = self.sample(mean, log_variance) if self.training else mean[None]  # S N K
        logits = self.head(z)
        loss, information = self._task_loss(logits, labels), None
        if self.training and loss is not None and self.compression is not None:
            terms = self.compression(z[0].float(), torch.cat([mean, log_variance], -1).float(), features.float())
            self.calls = self.calls + 1
            part = min(1.0, int(self.calls) / self.config.ramp_steps) if self.config.ramp_steps else 1.0
            loss = loss + float(self.config.weight * part) * terms.information + terms.estimator
            information = terms.information.detach()
        return BottleneckOutput(loss, self._in_units(logits.mean(0)), mean, log_variance, information)

    def features(
        self,
        input_ids: Tensor | None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        states: Tensor | None = None,
        segments: Tensor | None = None,
    ) -> Tensor:
        """Return the features (N, H), or (N, 3 H) of a pair."""
        if states is not None:
            with upper_only(self.encoder, self.config.layers):
                found = self.encoder(inputs_embeds=states, attention_mask=attention_mask).last_hidden_state
        else:
            types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
            found = self.encoder(input_ids=input_ids, attention_mask=attention_mask, **types).last_hidden_state
        if self.config.pooling == "first":
            return found[:, 0]
        mask = torch.ones_like(found[..., 0]) if attention_mask is None else attention_mask
        if self.config.pooling == "mean":
            return _mean(found, mask)
        which = token_type_ids if segments is None else segments
        if which is None:
            raise ValueError(
                "segments is missing; expected which text each token belongs to (N, L), 0 or 1, for features of a "
                "pair. Give them, or token_type_ids, or make the model with pooling='mean'"
            )
        means = (_mean(found, mask * part) for part in (torch.ones_like(which), which == 0, which == 1))
        q, u, v = (layer_norm(mean, mean.shape[-1:]) for mean in means)
        return torch.cat([q, (u - v).abs(), u * v], -1) / 2

    def sample(self, mean: Tensor, log_variance: Tensor) -> Tensor:
        """Draw from posteriors with means and log-variances (N, K): (samples, N, K)."""
        noise = torch.randn(self.config.samples, *mean.shape, device=mean.device, dtype=mean.dtype)
        return mean + (0.5 * log_variance).exp() * noise

    def values(self, z: Tensor) -> Tensor:
        """Return logits (N, C), or values (N, 1) in the units of the targets, of z (N, K)."""
        return self._in_units(self.head(z))

    @property
    def regression(self) -> bool:
        """Whether the head gives a value."""
        return bool(self.config.problem_type == "regression")

    def parameter_groups(self, lr: float, head_lr: float, estimator_lr: float | None = None) -> list[dict[str, Any]]:
        """Return what learns for an optimiser: the encoder, what is new, and the estimator."""
        groups = [] if self.compression is None else self.compression.parameter_groups(estimator_lr)
        others = {id(parameter) for group in groups for parameter in group["params"]}
        encoder = [parameter for parameter in self.encoder.parameters() if parameter.requires_grad]
        others |= {id(parameter) for parameter in self.encoder.parameters()}
        new = [parameter for parameter in self.parameters() if id(parameter) not in others]
        return [{"params": encoder, "lr": lr}, {"params": new, "lr": head_lr}, *groups]

    @classmethod
    def from_pretrained(cls, *args: Any, **options: Any) -> Any:
        """Load what ``save_pretrained`` has left; layers that did not learn stay so."""
        found: Any = super().from_pretrained(*args, **options)
        (found[0] if isinstance(found, tuple) else found)._prepare()
        return found

    def _prepare(self) -> None:
        """Set the dropout of the encoder, and which of its layers learn."""
        for part in self.encoder.modules():
            if isinstance(part, nn.Dropout):
                part.p = self.config.dropout
        if self.config.layers is not None:
            freeze(self.encoder, self.config.layers)

    def _task_loss(self, logits: Tensor, labels: Tensor | None) -> Tensor | None:
        """The mean over samples, of logits (S, N, C); in training what it counts in the mean over all ranks."""
        if labels is None:
            return None
        share = distributed.share(len(labels), labels.device) if self.training else 1.0
        if self.regression:
            targets = (labels.to(logits.dtype) - self.config.shift) / self.config.scale
            return mse_loss(logits.squeeze(-1), targets.expand(len(logits), -1)) * share
        return cross_entropy(logits.flatten(0, 1), labels.repeat(len(logits))) * share

    def _in_units(self, logits: Tensor) -> Tensor:
        return logits * self.config.scale + self.config.shift if self.regression else logits

    def _init_weights(self, module: nn.Module) -> None:
        """Leave every layer as torch starts it."""


def _mean(states: Tensor, mask: Tensor) -> Tensor:
    """The mean (N, H) of states (N, L, H) where the mask (N, L) is one."""
    weights = mask.to(states.dtype).unsqueeze(-1)
    return (states * weights).sum(1) / weights.sum(1).clamp_min(1.0)


def _mlp(F: int, H: int, K: int) -> nn.Sequential:
    """From F features to K numbers, for an encoder of width H."""
    wide, narrow = (3 * H + K) // 4, (H + K) // 2
    layers = nn.Linear(F, wide), nn.ReLU(), nn.Linear(wide, narrow), nn.ReLU(), nn.Linear(narrow, K)
    return nn.Sequential(*layers)


AutoConfig.register(BottleneckConfig.model_type, BottleneckConfig)
AutoModel.register(BottleneckConfig, Bottleneck)
