"""What the integrations need, and what they say without it."""

import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pytest

import infoknife.integrations

FOLDER = Path(infoknife.integrations.__file__).parent
NEEDS = {
    "lightning": "lightning.pytorch",
    "transformers": "transformers",
    "tensorboard": "torch.utils.tensorboard",
    "torchmetrics": "torchmetrics",
}
OTHERS = {
    "__init__",
    "knife_py",
    "scikit_learn",
}  # the package, what needs nothing, what derives from its library's classes


def test_every_module_is_listed() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} - OTHERS == NEEDS.keys()
    for name in NEEDS:
        assert f'pip install "infoknife[{name}]"' in str(infoknife.integrations.__doc__)


@pytest.mark.parametrize("name", NEEDS)
def test_a_missing_library_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, NEEDS[name], None)
    with pytest.raises(ImportError, match=rf'integrations\.{name} needs .* pip install "infoknife\[{name}\]"'):
        run_path(str(FOLDER / f"{name}.py"))


def test_the_package_imports_none_of_them() -> None:
    libraries = {*NEEDS, "sklearn", "zuko"}
    code = f"import sys, infoknife.integrations, infoknife.densities.flow; print({libraries} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
