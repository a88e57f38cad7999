"""Photographs and labels as users have them, and what is refused of them."""

import numpy as np
import pytest
import torch
from PIL import Image

from limi.errors import BadTable, InvalidInput
from limi.images.sources import read_images, read_labels, read_pictures
from tests.images.made import draw

N = 60


@pytest.fixture
def folder(tmp_path):
    """Sixty images and a table of theirs."""
    place = tmp_path / "faces"
    place.mkdir()
    images, labels = draw(N, np.random.default_rng(0))
    lines = ["file,gender,smile,source,split"]
    for number, image in enumerate(images):
        Image.fromarray(image).save(place / f"{number:03d}.png")
        group = "FM"[labels["gender"][number]]
        source = ("lab", "web", "album")[number % 3]
        part = "test" if number % 5 == 0 else "train"
        lines.append(f"{number:03d}.png,{group},{labels['smile'][number]},{source},{part}")
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    return place


def read(folder, **options):
    options = {"names": ["gender", "smile"], **options}
    return read_pictures(folder, folder.parent / "labels.csv", **options)


def change(folder, before, after):
    table = folder.parent / "labels.csv"
    table.write_text(table.read_text().replace(before, after))


def test_images_and_labels_go_together(folder):
    found = read(folder, hold=["source"])
    images, labels = draw(N, np.random.default_rng(0))
    assert np.array_equal(found.images, images)
    assert np.array_equal(found.labels["gender"], labels["gender"])
    assert found.values["gender"] == ("F", "M")
    assert {"source=album", "source=lab", "source=web"} <= set(found.labels)
    assert found.split.sum() == 12


def test_an_npz_file_holds_images_and_labels(folder, tmp_path):
    images, labels = draw(N, np.random.default_rng(0))
    np.savez(tmp_path / "faces.npz", images=images, male=labels["gender"])
    found = read_pictures(tmp_path / "faces.npz", names=["male"])
    assert np.array_equal(found.labels["male"], labels["gender"])
    assert found.values["male"] == ("0", "1")


def test_celebas_list_is_read(tmp_path):
    (tmp_path / "list.txt").write_text("2\nMale Smiling\n000001.jpg -1  1\n000002.jpg  1 -1\n")
    table = read_labels(tmp_path / "list.txt")
    assert table.column("file") == ["000001.jpg", "000002.jpg"]
    assert table.column("Smiling") == ["1", "-1"]


def test_grey_transparent_and_turned_images_are_taken_with_a_note(folder):
    Image.new("L", (16, 16), 90).save(folder / "000.png")
    Image.new("RGBA", (16, 16), (10, 20, 30, 0)).save(folder / "001.png")
    turned = Image.fromarray(np.arange(16 * 16 * 3, dtype=np.uint8).reshape(16, 16, 3))
    exif = Image.Exif()
    exif[0x0112] = 6
    turned.save(folder / "002.png", exif=exif)
    found = read(folder)
    assert (found.images[0] == 90).all()
    assert (found.images[1] == 255).all()
    assert np.array_equal(found.images[2], np.rot90(np.asarray(turned), -1))
    told = " ".join(found.notes)
    assert "1 image was grey" in told
    assert "1 image was transparent" in told
    assert "EXIF" in told


def test_mixed_sizes_are_refused_and_can_be_made_one(folder):
    Image.new("RGB", (20, 30)).save(folder / "000.png")
    with pytest.raises(BadTable, match=r"2 sizes \(59 of 16 x 16, 1 of 20 x 30\).*size"):
        read(folder)
    assert read(folder, size=12).images.shape == (N, 12, 12, 3)


def test_what_is_no_image_is_named(folder):
    (folder / "003.png").write_bytes(b"GIF89a nothing")
    with pytest.raises(BadTable, match=r"003.png' cannot be read as an image"):
        read(folder)


def test_labels_of_files_that_are_not_there_are_named(folder):
    (folder / "007.png").unlink()
    (folder / "008.png").unlink()
    with pytest.raises(BadTable, match=r"labels of 2 files that are not in .*: 007.png, 008.png"):
        read(folder)


def test_images_without_labels_serve_the_generator(folder):
    Image.new("RGB", (16, 16), (5, 5, 5)).save(folder / "zzz.png")
    found = read(folder)
    assert found.labels["gender"][-1] == -1
    assert any(
        "1 image has no labels and serves only the generator: zzz.png" in note
        for note in found.notes
    )


def test_one_group_alone_is_refused(folder):
    change(folder, ",F,", ",M,")
    with pytest.raises(BadTable, match=r"'gender' has only one value \(M\)"):
        read(folder)


def test_three_groups_are_refused_where_two_are_compared(folder):
    with pytest.raises(BadTable, match=r"'source' has 3 values.*two are needed"):
        read(folder, names=["source"])


def test_ten_images_are_too_few(tmp_path):
    np.savez(tmp_path / "few.npz", images=draw(10, np.random.default_rng(0))[0])
    with pytest.raises(BadTable, match="there are 10 images"):
        read_pictures(tmp_path / "few.npz")


def test_a_label_that_is_not_there_is_told_with_the_nearest(folder):
    with pytest.raises(InvalidInput, match="did you mean 'gender'"):
        read(folder, names=["gendr"])


def test_two_lines_of_one_file_are_refused(folder):
    change(folder, "001.png,", "000.png,")
    with pytest.raises(BadTable, match=r"two lines for 000.png"):
        read(folder)


def test_a_short_line_is_refused(folder):
    change(folder, ",train\n", "\n")
    with pytest.raises(BadTable, match="cells, but the header has 5"):
        read(folder)


def test_pickles_in_arrays_are_not_opened(tmp_path):
    np.savez(tmp_path / "bad.npz", images=np.array([{"a": 1}], dtype=object))
    with pytest.raises(BadTable, match="cannot be read as arrays"):
        read_pictures(tmp_path / "bad.npz")
    (tmp_path / "none.npz").write_bytes(b"PK nothing")
    with pytest.raises(BadTable, match="cannot be read as arrays"):
        read_pictures(tmp_path / "none.npz")


def test_an_empty_folder_has_no_images(tmp_path):
    with pytest.raises(BadTable, match="there are no images"):
        read_pictures(tmp_path)
    with pytest.raises(InvalidInput, match="there is no file"):
        read_pictures(tmp_path / "nowhere")


def test_a_bomb_of_pixels_is_not_unpacked(tmp_path):
    Image.new("1", (9000, 9000)).save(tmp_path / "bomb.png")
    with pytest.raises(BadTable, match="too large"):
        read_images([tmp_path / "bomb.png"])


def test_files_that_the_labels_miss_are_named(folder):
    table = folder.parent / "labels.csv"
    table.write_text("\n".join(table.read_text().splitlines()[:-2]) + "\n")
    assert read(folder).notes == (
        "2 images have no labels and serve only the generator: 058.png, 059.png",
    )


def test_folders_are_labels(folder, tmp_path):
    sides = tmp_path / "sides"
    for number, path in enumerate(sorted(folder.iterdir())):
        place = sides / ("left" if number % 2 else "right")
        place.mkdir(parents=True, exist_ok=True)
        path.rename(place / path.name)
    found = read_pictures(sides, names=["folder"])
    assert found.values["folder"] == ("left", "right")
    assert found.labels["folder"].sum() == N // 2
    with pytest.raises(InvalidInput, match=r"no labels for 'gender'.* one of folder"):
        read_pictures(sides, names=["gender"])


def make_items(form):
    """A dataset as other libraries have them."""
    images, labels = draw(N, np.random.default_rng(0))
    group, smile = labels["gender"], labels["smile"]
    items = {
        "mapping": [
            {"image": Image.fromarray(x), "gender": int(g), "box": [1, 2]}
            for x, g in zip(images, group, strict=True)
        ],
        "class": [(Image.fromarray(x), int(g)) for x, g in zip(images, group, strict=True)],
        "attributes": [
            (torch.from_numpy(x).permute(2, 0, 1) / 255, torch.tensor([g, s]))
            for x, g, s in zip(images, group, smile, strict=True)
        ],
    }

    class Items(list):
        classes = ("F", "M") if form != "class" else ["F", "M"]
        attr_names = ("gender", "smile", "")

    return images, group, Items(items[form])


@pytest.mark.parametrize(
    ("form", "name"), [("mapping", "gender"), ("class", "target"), ("attributes", "gender")]
)
def test_datasets_of_other_libraries_are_read(form, name):
    images, group, items = make_items(form)
    found = read_pictures(items, names=[name])
    assert np.array_equal(found.images, images)
    assert np.array_equal(found.labels[name], group)
    if form == "class":
        assert found.values[name] == ("F", "M")


def test_datasets_that_hold_something_else_are_refused():
    _, _, items = make_items("attributes")
    items[3] = (2 * items[3][0] - 1, items[3][1])
    with pytest.raises(
        BadTable, match=r"item 3 .* outside 0 to 1; leave out the step that normalizes"
    ):
        read_pictures(items, names=["gender"])
    items[3] = ("cat.png", items[3][1])
    with pytest.raises(BadTable, match="item 3 of the dataset is not an image but str"):
        read_pictures(items, names=["gender"])
    with pytest.raises(BadTable, match="there are 10 images in the dataset"):
        read_pictures(items[:10])
    with pytest.raises(BadTable, match="no image among them"):
        read_pictures([{"text": "a"}] * N)
