"""Generated input: rows of every size, value, dtype, layout and container."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import torch
from hypothesis import strategies as st
from torch import Tensor

SIZES = (0, 1, 2, 3, 17, 64, 257)
VALUES = (
    *("normal", "constant", "zero", "repeated rows", "rank-deficient", "ties", "mixed scales", "far from zero"),
    *("huge", "largest", "subnormal", "tiny", "outlier", "far outlier", "alternating"),
    *("nan", "inf", "-inf", "all nan"),
)
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
ODD_DTYPES = (torch.int64, torch.int32, torch.uint8, torch.uint64, torch.bool, torch.complex64, torch.float8_e4m3fn)
SAME = ("plain", "transposed", "every other", "backwards", "numpy", "fortran", "read-only", "pandas", "polars", "list")
SAME_TENSORS = ("negative view", "inference", "with gradient", "expanded")
ODD_LAYOUTS = ("sparse", "csr", "meta", "nested", "quantized", "mkldnn", "masked", "text", "object", "none", "ragged")
SHAPES = ("matrix", "matrix", "matrix", "matrix", "column", "three axes", "scalar", "no columns")


@dataclass(frozen=True)
class Rows:
    """One argument: the numbers as they are, and in the container that they come in."""

    what: str
    plain: Tensor
    given: Any


@st.composite
def rows(draw: st.DrawFn, columns: int, *, sizes: tuple[int, ...] = SIZES, odd: bool = True) -> Rows:
    """Rows of about so many columns; with ``odd`` also such as no function can take."""
    n, value, dtype = draw(st.sampled_from(sizes)), draw(st.sampled_from(VALUES)), draw(st.sampled_from(DTYPES))
    shape = draw(st.sampled_from(SHAPES)) if odd else "matrix"
    rare = odd and draw(st.integers(0, 3)) == 0
    if rare and draw(st.booleans()):
        dtype = draw(st.sampled_from(ODD_DTYPES))
    x = numbers(n, columns, value, draw(st.integers(0, 2**32 - 1)))
    x = shaped(x, shape)
    with np.errstate(all="ignore"):
        x = x.to(dtype)
    layout = draw(st.sampled_from((*SAME, *SAME_TENSORS, *(ODD_LAYOUTS if rare else ()))))
    return Rows(f"{shape} {n} x {columns}, {value}, {dtype}, {layout}", x, in_layout(x, layout))


def numbers(n: int, columns: int, value: str, seed: int) -> Tensor:
    """Numbers (n, columns) of a kind, float64."""
    x = torch.randn(n, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    row = slice(n // 2, n // 2 + 1)
    made = {
        "constant": lambda: torch.full_like(x, 3.7),
        "zero": lambda: torch.zeros_like(x),
        "repeated rows": lambda: x[:1].expand(n, columns).clone() if n else x,
        "rank-deficient": lambda: x[:, :1] * torch.arange(1, columns + 1),
        "ties": x.round,
        "mixed scales": lambda: x * 10.0 ** torch.linspace(-30, 30, columns, dtype=torch.double),
        "far from zero": lambda: x + 1e7,
        "huge": lambda: x * 1e37,
        "largest": lambda: x.sign() * 1e38,
        "subnormal": lambda: x * 1e-40,
        "tiny": lambda: x * 1e-30,
        "alternating": lambda: torch.where(torch.arange(n)[:, None] % 2 == 0, 1e-20, 1e20) + 0 * x,
    }
    spoilt = {"outlier": 1e6, "far outlier": 1e30, "nan": torch.nan, "inf": torch.inf, "-inf": -torch.inf}
    if value in spoilt:
        x[row, -1:] = spoilt[value]
    if value == "all nan":
        return torch.full_like(x, torch.nan)
    return made[value]() if value in made else x


def shaped(x: Tensor, shape: str) -> Tensor:
    if shape == "column":
        return x[:, 0]
    if shape == "three axes":
        return x[None]
    if shape == "scalar":
        return x.sum()
    return x[:, :0] if shape == "no columns" else x


def in_layout(x: Tensor, layout: str) -> Any:
    """The same numbers in another container, or something that only looks like it."""
    array_ready = x.dtype not in (torch.bfloat16, torch.float8_e4m3fn)
    array: Any = x.numpy() if array_ready else x
    if (
        layout in ("backwards", "numpy", "fortran", "read-only", "pandas", "polars", "list", "masked", "object")
        and not array_ready
    ):
        return x
    makers: dict[str, Any] = {
        "transposed": lambda: x.mT.contiguous().mT if x.dim() > 1 else x,
        "every other": lambda: x.repeat_interleave(2, 0)[::2] if x.dim() else x,
        "backwards": lambda: np.flip(np.flip(array, 0).copy(), 0) if x.dim() else array,
        "numpy": lambda: array,
        "fortran": lambda: np.asfortranarray(array),
        "read-only": lambda: _locked(array),
        "pandas": lambda: pd.DataFrame(array) if x.dim() == 2 and x.shape[1] else array,
        "polars": lambda: pl.DataFrame(array) if x.dim() == 2 and array.dtype.kind != "c" and x.shape[1] else array,
        "list": x.tolist,
        "negative view": lambda: torch._neg_view(-x) if x.is_floating_point() and x.dtype != torch.float8_e4m3fn else x,
        "inference": lambda: _in_inference_mode(x),
        "with gradient": lambda: x.clone().requires_grad_() if x.is_floating_point() and x.itemsize > 1 else x,
        "expanded": lambda: x.unsqueeze(0).expand(1, *x.shape)[0],
        "sparse": lambda: x.to_sparse() if x.dim() and x.itemsize > 1 else None,
        "csr": lambda: x.to_sparse_csr() if x.dim() == 2 and x.dtype in (torch.float32, torch.float64) else None,
        "meta": lambda: x.to("meta"),
        "nested": lambda: (
            torch.nested.nested_tensor([x.float(), x.float()]) if x.dim() and not x.is_complex() else None
        ),
        "quantized": lambda: torch.quantize_per_tensor(torch.ones(3, 2), 0.1, 0, torch.quint8),
        "mkldnn": lambda: x.to_mkldnn() if x.dtype == torch.float32 and x.dim() and x.numel() else None,
        "masked": lambda: np.ma.masked_invalid(array),
        "text": lambda: "rows",
        "object": lambda: array.astype(object),
        "none": lambda: None,
        "ragged": lambda: [[1.0], [1.0, 2.0]],
    }
    return makers[layout]() if layout in makers else x


def _locked(array: Any) -> Any:
    array = np.array(array)
    array.flags.writeable = False
    return array


def _in_inference_mode(x: Tensor) -> Tensor:
    with torch.inference_mode():
        return x.clone()


def codes(classes: int, *, sizes: tuple[int, ...] = SIZES) -> st.SearchStrategy[Any]:
    """Class codes, most of them in range."""

    def make(n: int, seed: int, kind: str) -> Any:
        c = torch.randint(classes, (n,), generator=torch.Generator().manual_seed(seed))
        made: dict[str, Any] = {
            "plain": lambda: c,
            "numpy": c.numpy,
            "uint8": lambda: c.to(torch.uint8),
            "uint64": lambda: c.to(torch.uint64),
            "inference": lambda: _in_inference_mode(c),
            "list": c.tolist,
            "one class": lambda: torch.zeros_like(c),
            "too large": lambda: c + classes,
            "negative": lambda: c - 1,
            "floats": c.float,
            "matrix": lambda: c[:, None],
            "categories": lambda: pd.Series(pd.Categorical(c.tolist())),
            "strings": lambda: [str(one) for one in c.tolist()],
            "sparse": lambda: c.to_sparse() if n else c,
            "meta": lambda: c.to("meta"),
            "bool": lambda: c > 0,
        }
        return made[kind]()

    kinds = ("plain", "plain", "numpy", "uint8", "uint64", "inference", "list", "one class", "too large", "negative")
    more = ("floats", "matrix", "categories", "strings", "sparse", "meta", "bool")
    return st.builds(make, st.sampled_from(sizes), st.integers(0, 2**31), st.sampled_from(kinds + more))
