import sys

import pytest

from infoknife.paper.applications.optional import library


def test_library_is_the_module() -> None:
    assert library("json.decoder") is sys.modules["json.decoder"]


@pytest.mark.parametrize(("extra", "install"), [(None, "absent"), ("parquet", r"'infoknife\[parquet\]'")])
def test_what_is_missing_is_asked_for(extra: str | None, install: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "absent.part", None)
    monkeypatch.setitem(sys.modules, "absent", None)
    with pytest.raises(ModuleNotFoundError, match=rf"^these data need absent; install it with: pip install {install}$"):
        library("absent.part", extra)
