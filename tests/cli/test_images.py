"""`limi images` as a user runs it: folders, pairs, resuming, sentences."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from limi.images import conduct, folder
from tests.images.made import draw

N = 240
TARGET = """
from pathlib import Path
import numpy as np
from tests.images.made import look_at_mouth
calls = Path(__file__).with_name("calls.txt")

def mouth(images):
    with calls.open("a") as file:
        file.write(f"{len(images)}\\n")
    return look_at_mouth(images)

def broken(images):
    mouth(images)
    fail = calls.with_name("fail").exists()
    if fail and len(calls.read_text().split()) > 6:
        raise RuntimeError("no more")
    return look_at_mouth(images)

turns = []

def flipping(images):
    turns.append(1)
    return np.random.default_rng(len(turns)).random(len(images))
"""


@pytest.fixture(scope="module", autouse=True)
def small_planes():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conduct, "_PLANE_LATENTS", 600)
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with images, labels and a target."""
    place = tmp_path_factory.mktemp("home")
    images, labels = draw(N, np.random.default_rng(0))
    (place / "faces").mkdir()
    for number, image in enumerate(images):
        Image.fromarray(image).save(place / "faces" / f"{number:03d}.png")
    frame = pd.DataFrame({"file": [f"{n:03d}.png" for n in range(N)], **labels})
    frame["gender"] = np.array(["F", "M"])[frame["gender"]]
    frame.to_csv(place / "labels.csv", index=False)
    (place / "target.py").write_text(TARGET)
    (place / "calls.txt").write_text("")
    return place


@pytest.fixture
def words(home):
    def make(out, target="mouth", *more):
        return [
            *("images", "test", "--images", str(home / "faces")),
            *("--labels", str(home / "labels.csv")),
            *("--target", f"python:{home / 'target.py'}:{target}"),
            *("--protected", "gender", "--truth", "smile", "--hold", "ground"),
            *("--cases", "120", "--out", str(home / out), *more),
        ]

    return make


def test_a_run_folder_holds_pairs_that_flip_from_their_files(limi, home, words):
    code, out, _ = limi(*words("run", "mouth", "--plant", "3", "--json", "--pairs", "20"))
    assert code == 0
    told = json.loads(out)
    assert told["verdict"] == "both"
    assert told["effect"]["direction"] > 0.9
    run = home / "run"
    table = pd.read_parquet(run / "findings.parquet")
    assert len(table) == told["pairs"] == len(list(run.glob("pair-*-start.png"))) > 3
    images = np.stack([folder.read_png(run / f"pair-{n:05d}-start.png") for n in table["pair"]])
    assert images.dtype == np.uint8
    assert ((table["score"] > 0.5) != (table["twin_score"] > 0.5)).all()
    page = (run / "report.html").read_text()
    assert "img-src data:" in page
    assert "What this does not show" in page
    assert json.loads((run / "images.json").read_text())["findings"] == told["findings"]


def test_a_run_that_failed_goes_on_where_it_stopped(limi, home, words):
    (home / "calls.txt").write_text("")
    (home / "fail").touch()
    code, _, err = limi(*words("later", "broken"))
    assert code == 4
    assert "the target raised RuntimeError: no more" in err
    assert (home / "later.partial").is_dir()
    code, _, err = limi(*words("later", "broken", "--resume", "--seed", "1"))
    assert code == 2
    assert "different settings, data or model" in err
    (home / "fail").unlink()
    (home / "calls.txt").write_text("")
    code, _, err = limi(*words("later", "broken", "--resume"))
    assert code == 0
    assert "the run was resumed" in err
    asked = sum(map(int, (home / "calls.txt").read_text().split()))
    (home / "calls.txt").write_text("")
    assert limi(*words("whole", "broken"))[0] == 0
    assert asked < sum(map(int, (home / "calls.txt").read_text().split()))
    mine, other = (json.loads((home / n / "images.json").read_text()) for n in ("later", "whole"))
    assert mine["effect"] == other["effect"]
    assert mine["findings"] == other["findings"]


def test_a_folder_is_replaced_only_when_that_is_asked_for(limi, home, words):
    assert limi(*words("twice", "mouth", "--max-queries", "900"))[0] == 0
    code, _, err = limi(*words("twice"))
    assert code == 2
    assert "exists already" in err
    (home / "twice" / "mine.txt").write_text("keep")
    code, _, err = limi(*words("twice", "mouth", "--force"))
    assert code == 2
    assert "mine.txt" in err
    (home / "twice" / "mine.txt").unlink()
    code, out, _ = limi(*words("twice", "mouth", "--force", "--max-queries", "900"))
    assert code == 0
    assert "random moves" in out


def test_a_target_that_answers_by_chance_finds_nothing_it_can_keep(limi, home, words):
    code, out, _ = limi(*words("chance", "flipping", "--json"))
    assert code == 0
    told = json.loads(out)
    kept = pd.read_parquet(home / "chance" / "findings.parquet")
    assert len(kept) == told["pairs"]
    assert len(list((home / "chance").glob("*.png"))) == 2 * len(kept)
    assert any("did not flip" in note for note in told["notes"])


def test_generators_and_scorers_are_fitted_to_files(limi, home, words):
    where = ("--images", str(home / "faces"), "--labels", str(home / "labels.csv"))
    code, out, _ = limi("images", "fit", *where, "--out", str(home / "faces.npz"), "--json")
    assert code == 0
    assert json.loads(out)["copies"] < 0.2
    scorer = str(home / "smile.npz")
    attribute = ("--attribute", "smile", "--beside", "gender", "--out", scorer, "--json")
    code, out, _ = limi("images", "fit", *where, *attribute)
    assert code == 0
    assert json.loads(out)["held_out_accuracy"] > 0.75
    asked = words("by_file", "mouth", "--generator", str(home / "faces.npz"))
    asked[asked.index("--target") + 1] = f"scorer:{scorer}"
    assert limi(*asked)[0] == 0


@pytest.mark.parametrize(
    ("more", "code", "words_of_it"),
    [
        (("--protected", "age"), 2, "no column 'age'"),
        (("--generator", "stylegan"), 2, "unknown generator 'stylegan'"),
        (("--generator", "pggan:none.pth"), 2, "unknown generator 'pggan:none.pth'"),
        (("--target", "pickle:model.pkl"), 2, "not of the form KIND:PLACE"),
        (("--images", "nowhere"), 2, "there is no file 'nowhere'"),
        (("--device", "cuda:99"), 2, "cannot be used"),
        (("--plant", "nan"), 2, "plant is nan"),
        (("--size", "3"), 2, "size is 3"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_no_folder(limi, home, words, more, code, words_of_it):
    found, _, err = limi(*words("refused", "mouth", *more))
    assert found == code
    assert words_of_it in err
    assert err.strip().count("\n") == 0
    assert not (home / "refused").exists()
    assert not (home / "refused.partial").exists()
