"""One table of what the commands refuse: exit code 2, one line on stderr that names the argument, and no work."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.paper.applications.ib_text.sentences import pairs
from tests.paper.applications.tables_of_texts import SECRET, cells, write

ADAPT = "train domain-adaptation --data . --source dark --target light --preset quick --out out"
FAIR, TEXTS = "train fair-text --out out", "train ib-text --out out"
OWN = "--data posts.csv --label mood --private age"
MEASURE = "mi flowers.csv --x length --y width"
BAD: list[tuple[str, tuple[str, ...]]] = [  # what is asked, and words that the line has
    ("entropy nothing.csv", ("nothing.csv does not exist",)),
    ("entropy flowers.csv --columns lenght", ("'lenght'", "did you mean 'length'")),
    ("entropy flowers.csv --columns same", ("same is constant",)),
    ("entropy flowers.csv --columns species --continuous species", ("species", "strings")),
    ("entropy flowers.csv --given length,width,species,bees,same", ("--given",)),
    ("entropy flowers.csv --groups length,width", ("--groups names 2 columns",)),
    ("entropy flowers.csv --columns length,width,length", ("--columns", "'length'", "more than once")),
    ("entropy flowers.csv --columns length,", ("there is no column ''",)),
    ("entropy flowers.csv --discrete length --continuous length", ("'length'", "--discrete", "--continuous")),
    ("entropy flowers.csv --discrete q", ("--discrete", "'q'")),
    ("entropy flowers.csv --method magic", ("--method is 'magic'", "'independent'")),
    ("entropy flowers.csv --pointwise", ("--pointwise", "--json")),
    ("entropy flowers.csv --plot picture.jpg", ("--plot is picture.jpg", ".png, .svg")),
    ("entropy flowers.csv --plot no/a.png", ("cannot write to no/a.png",)),
    ("mi flowers.csv", ("--x", "--y", "--all")),
    ("mi flowers.csv --x length", ("--x", "--y")),
    ("mi flowers.csv --all --x length", ("--x does not go with --all",)),
    ("mi flowers.csv --all --given length", ("--given does not go with --all",)),
    ("mi flowers.csv --all --json --pointwise", ("--pointwise does not go with --all",)),
    ("mi flowers.csv --all --columns length", ("--all has length alone",)),
    ("mi flowers.csv --all --columns length,q", ("--columns", "'q'")),
    ("mi flowers.csv --all --out no/a.csv", ("cannot write to no/a.csv",)),
    *(
        (f"{MEASURE} {option} {value}", (f"{option} is for --all alone",))
        for option, value in (("--columns", "bees"), ("--out", "pairs.csv"), ("--jobs", 2), ("--screen", 0.1))
    ),
    (
        "mi flowers.csv --all --columns length,width --scheduler tcp://127.0.0.1:1",
        ("no Dask scheduler answers at tcp://127.0.0.1:1",),
    ),
    (f"{MEASURE} --given bees --permutations 9", ("--permutations", "--given")),
    ("mi flowers.csv --x length --y q", ("--y", "'q'")),
    ("audit flowers.csv --private q", ("--private", "'q'")),
    ("audit flowers.csv --private length,width", ("--private names 2 columns",)),
    ("audit flowers.csv --private species --features width,species", ("--features has species",)),
    ("audit flowers.csv --private species --label species", ("--label is species",)),
    ("audit flowers.csv --private bees --discrete bees --continuous bees", ("--discrete", "--continuous")),
    ("audit flowers.csv --private species --continuous width", ("--continuous names width",)),
    ("audit nothing.npz --private s", ("nothing.npz does not exist",)),
    ("audit flowers.csv --private species --out no/a.html", ("cannot write to no/a.html",)),
    ("audit words.csv --private s", ("words.csv has no features",)),
    ("audit counted.csv --private s", ("n looks like an identifier", "--features")),
    ("tasks gausian-1x1", ("'gausian-1x1'", "gaussian-1x1")),
    ("tasks --kind mi moons", ("moons",)),
    ("report nowhere", ("nowhere", "infoknife reproduce")),
    ("reproduce table9", ("table9", "table1", "fig3-uniform", "all")),
    ("reproduce table1 --preset fast", ("fast", "paper", "ours", "quick")),
    ("reproduce table1 --methods knife,mine", ("mine", "knife", "schraudolph", "doe")),
    ("reproduce table1 --seeds 20", ("20", "0, 1, 2")),
    ("reproduce table1 --seeds some", ("some", "0-9")),
    ("reproduce fig4 --weights some", ("weights is 'some'", "0.1,1")),
    ("reproduce fig4 --corpora imdb", ("corpus is 'imdb'", "dial-mention")),
    ("reproduce table1 --corpora dial-mention", ("corpus", "table1")),
    ("bench --preset paper", ("paper", "standard", "quick")),
    ("bench --tasks moosn", ("moosn", "moons")),
    ("bench --methods ksg", ("ksg", "knife", "parzen")),
    ("bench --methods adv --tasks moons", ("adv",)),
    ("bench --n many", ("n is 'many'",)),
    ("bench --n 5", ("5", "at least 20")),
    ("bench --seeds x", ("seeds", "x", "0-9")),
    (f"{ADAPT} --method foo", ("method is 'foo'", "'dann'")),
    (f"{ADAPT} --preset gpu", ("preset is 'gpu'",)),
    (f"{ADAPT} --source grey", ("grey.npz", "dark.npz, light.npz")),
    (f"{ADAPT} --source light", ("source and target are both 'light'",)),
    (f"{ADAPT} --device gpu", ("device is 'gpu'",)),
    (f"{ADAPT} --lr 0", ("lr is 0.0",)),
    (f"{ADAPT} --set size", ("--set", "name=value")),
    (f"{ADAPT} --set stepz=3", ("stepz", "steps")),
    (f"{ADAPT} --set size=big", ("size is 'big'",)),
    (f"{ADAPT} --set weight.a=3", ("weight.a=3", "estimator")),
    (f"{FAIR} {OWN} --hub a/b", ("data is", "hub is 'a/b'")),
    (f"{FAIR} --corpus foo", ("corpus is 'foo'", "dial-sentiment")),
    (f"{FAIR} --corpus dial-mention --label mood", ("corpus is 'dial-mention'", "mood")),
    (f"{FAIR} --corpus synthetic --data posts.csv", ("synthetic",)),
    (f"{FAIR} --corpus dial-sentiment", ("--data", "--hub")),
    (f"{FAIR} --label mood --private age", ("--data", "--hub")),
    (f"{FAIR} --data posts.csv", ("label", "private", "dial-sentiment")),
    (f"{FAIR} --data posts.csv --label mood --private mood", ("label and private are both the column 'mood'",)),
    (f"{FAIR} --data posts.csv --label height --private age", ("'height'", "'mood'")),
    (f"{FAIR} --data absent.csv --label mood --private age", ("absent.csv",)),
    (f"{FAIR} --weight 1 --at-most 0.1", ("--weight", "--at-most")),
    (f"{FAIR} --fine-tune", ("fine_tune", "minilm")),
    (TEXTS, ("task is 'own'", "label", "mrpc, stsb, rte")),
    (f"{TEXTS} --task cola --data mrpc.csv", ("task is 'cola'", "'mrpc'")),
    (f"{TEXTS} --task mrpc --label label --data mrpc.csv", ("task is 'mrpc'", "label")),
    (f"{TEXTS} --label label", ("--data", "--hub")),
    (f"{TEXTS} --task mrpc --data mrpc.csv --hub a/b", ("data is", "hub is 'a/b'")),
    (f"{TEXTS} --label label --second a --no-second --data mrpc.csv", ("--second", "--no-second")),
    (f"{TEXTS} --task mrpc --data mrpc.csv --train-size few", ("train_size is 'few'",)),
    (f"{TEXTS} --task mrpc --data mrpc.csv --train-size 1000", ("train_size is 1000",)),
    (f"{TEXTS} --task mrpc --data absent.csv", ("absent.csv",)),
]


@pytest.fixture
def folder(flowers: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of every kind that the commands read."""
    here = flowers.parent
    (here / "words.csv").write_text("s\n" + "a\n" * 12)
    (here / "counted.csv").write_text("s,n\n" + "".join(f"a,{i}\n" for i in range(12)))
    write(here / "posts.csv", cells())
    write(here / "mrpc.csv", pairs())
    images, labels = np.zeros((4, 8, 8, 3), np.uint8), np.arange(4) % 2
    for domain in ("dark", "light"):
        np.savez(here / f"{domain}.npz", x_train=images, x_test=images, y_train=labels, y_test=labels)
    monkeypatch.chdir(here)
    return here


@pytest.mark.parametrize(("arguments", "words"), BAD, ids=[arguments for arguments, _ in BAD])
def test_what_is_refused(run: Run, folder: Path, arguments: str, words: tuple[str, ...]) -> None:
    before, command = {*folder.iterdir()}, arguments.split(maxsplit=1)[0]
    result = run(*arguments.split())
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"infoknife {command}")
    assert [word for word in words if word not in line] == []
    assert SECRET not in line
    assert {*folder.iterdir()} == before
