"""The regularizer's health in TensorBoard, read back from the event file."""

from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

from infoknife import KNIFE, Regularizer
from infoknife.integrations.tensorboard import RegularizerWriter


@pytest.fixture
def regularizer() -> Regularizer:
    return Regularizer(KNIFE(2, components=4), seed=0, warn=False)


def read(path: Path) -> EventAccumulator:
    return EventAccumulator(str(path)).Reload()


def test_all_scalars_are_written(tmp_path: Path, regularizer: Regularizer, generator: torch.Generator) -> None:
    with SummaryWriter(tmp_path) as writer:
        health = RegularizerWriter(writer, tag="h(z)")
        for step in range(3):
            regularizer.step(torch.randn(32, 2, generator=generator))
            health.write(regularizer, step=10 * step)
    events = read(tmp_path)
    scalars = regularizer.health().scalars()
    assert set(events.Tags()["scalars"]) == {f"h(z)/{name}" for name in scalars}
    assert [event.step for event in events.Scalars("h(z)/steps")] == [0, 10, 20]
    assert [event.value for event in events.Scalars("h(z)/steps")] == [1, 2, 3]
    assert events.Scalars("h(z)/estimate")[-1].value == pytest.approx(scalars["estimate"])
    assert events.Tags()["tensors"] == []


def test_a_kind_of_message_is_written_once(
    tmp_path: Path, regularizer: Regularizer, generator: torch.Generator
) -> None:
    with SummaryWriter(tmp_path) as writer:
        health = RegularizerWriter(writer)
        for _ in range(3):  # the number in the message grows
            regularizer.step(torch.cat([torch.randn(32, 2, generator=generator), torch.full((1, 2), torch.nan)]))
            health.write(regularizer)
    events = read(tmp_path)
    (told,) = events.Tensors("regularizer/messages/text_summary")
    assert told.step == 1
    assert told.tensor_proto.string_val[0].startswith(b"1 rows with values or gradients that are not finite")
    assert [event.value for event in events.Scalars("regularizer/skipped_rows")] == [1, 2, 3]
