"""The paper's experiments: the quick run, the committed results, and the loaders of predictions."""

import csv
import importlib.util
import json
import math
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ckce

PAPER = Path(__file__).parents[1] / "examples" / "paper"
RESULTS = PAPER / "results"
FIGURES = [
    "approximation",
    "covariate_shift",
    "kernel_robustness",
    "limits",
    "reliability_synthetic",
]


@pytest.fixture(scope="module", autouse=True)
def _paths():
    sys.path.insert(0, str(PAPER))
    yield
    sys.path.remove(str(PAPER))


def table(path, *keys):
    """Rows of a CSV by the values of some columns."""
    with open(path, newline="") as file:
        return {tuple(row[key] for key in keys): row for row in csv.DictReader(file)}


def cv(folder, name, metric):
    return float(table(folder / f"{name}_summary.csv", "metric")[(metric,)]["cv"])


def write_predictions(folder):
    """Two models of one data set, plain and as series of brightness."""
    rng = np.random.default_rng(0)
    levels = np.array([-50, 0, 50])
    logits = 2 * rng.normal(size=(120, 4))
    truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (truth.cumsum(axis=1)[:, :-1] < rng.random((120, 1))).sum(axis=1)
    for name, slope in (("sharp", 1.8), ("soft", 0.9)):
        odds = np.exp(slope * logits * (1 - np.abs(levels) / 200)[:, None, None])
        probs = odds / odds.sum(axis=-1, keepdims=True)
        np.savez(folder / f"toy_{name}.npz", probs=probs[1], labels=labels)
        np.savez(folder / f"toy_{name}_brightness.npz", probs=probs, labels=labels, levels=levels)
    return labels, probs[1]


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """One quick run of everything."""
    data, out = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("out")
    last = write_predictions(data)
    import run

    run.main(["--quick", "--data", str(data), "--out", str(out)])
    return out, last


# Nine alphas, three trials of 400 samples: wider bands than those of the full run below.
@pytest.mark.parametrize(
    ("name", "key", "low", "high"),
    [
        ("covariate_shift", "ckce", 0.05, 0.16),
        ("covariate_shift", "jkce", 0.35, 0.55),
        ("covariate_shift", "ece", 0.12, 0.25),
        ("kernel_robustness", "linear_gaussian", 0.05, 0.16),
        ("kernel_robustness", "linear", 0.09, 0.22),
        ("kernel_robustness", "gaussian", 0.16, 0.30),
    ],
)
def test_quick_run(quick, name, key, low, high):
    out, _ = quick
    assert low < cv(out, name, key) < high
    rows = table(out / f"{name}.csv", "trial", "alpha")
    assert len(rows) == 27


def test_quick_run_writes_every_figure(quick):
    out, _ = quick
    for name in [*FIGURES, "brightness_toy", "reliability_toy"]:
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_quick_table(quick):
    out, (labels, probs) = quick
    rows = table(out / "table1.csv", "data", "model")
    soft = rows[("toy", "soft")]
    assert float(soft["ckce"]) == pytest.approx(ckce.ckce(labels, probs), rel=1e-9)
    assert float(soft["ece"]) == pytest.approx(ckce.ece(labels, probs, variant="simplex"), rel=1e-9)
    # Balanced labels and equal probabilities: both are known.
    n, m = 2000, 100
    uniform = rows[("balanced", "marginal (uniform)")]
    assert float(uniform["jkce"]) == pytest.approx(-(1 - 1 / m**2) / (n - 1), rel=1e-9)
    assert float(uniform["ece"]) == pytest.approx(0.0, abs=1e-12)
    assert float(uniform["ckce"]) == pytest.approx(0.0, abs=1e-15)
    # The frequencies of the classes leave no residual on average.
    assert float(rows[("toy", "marginal (frequencies)")]["ckce"]) == pytest.approx(0.0, abs=1e-15)


def test_sampled_labels_are_biased_by_the_floor(quick):
    rng = np.random.default_rng(1)
    q = rng.dirichlet(np.ones(3), 60)
    y = rng.integers(0, 3, 60)
    import approximation

    from ckce import reference

    gram = reference.gram("linear_gaussian", q, q, 0.5)
    values = [approximation.sampled_z(y, q, gram, seed) for seed in range(400)]
    e = ckce.estimate(y, q, bandwidth=0.5)
    error = np.std(values) / math.sqrt(len(values))
    assert abs(np.mean(values) - (e.value + e.floor)) < 4 * error
    assert np.std(values) > 0.1 * e.value


@pytest.mark.parametrize("choice", [["--bandwidth", "pooled"], ["--bandwidth", "0.4"]])
def test_brightness_takes_other_bandwidths(tmp_path, choice):
    write_predictions(tmp_path)
    import brightness

    brightness.main(["--data", str(tmp_path), "--out", str(tmp_path), *choice])
    rows = table(tmp_path / "brightness.csv", "model", "level")
    used = {float(row["bandwidth"]) for row in rows.values()}
    assert len(used) == 1
    with np.load(tmp_path / "toy_soft_brightness.npz") as file:
        expected = ckce.ckce(file["labels"], file["probs"][2], bandwidth=used.pop())
    assert float(rows[("soft", "50")]["ckce"]) == pytest.approx(expected, rel=1e-6)
    with np.load(tmp_path / "toy_soft_brightness.npz") as file:
        arrays = dict(file)
    np.savez(tmp_path / "toy_other_brightness.npz", **arrays | {"labels": arrays["labels"][::-1]})
    with pytest.raises(ValueError, match="must have the labels and levels of the other"):
        brightness.main(["--data", str(tmp_path), "--out", str(tmp_path)])


def test_kernel_on_one_probability():
    import synthetic

    y, q = synthetic.draw(np.random.default_rng(0), 0.3, 80, 0.25)
    gaussian, both = (synthetic.scalar_kernel(k, 0.4) for k in ("gaussian", "linear_gaussian"))
    # Distances of (1 - q, q) are those of q times the square root of 2, and so is the bandwidth.
    expected = ckce.ckce(y, q, kernel="gaussian", bandwidth=0.4)
    assert ckce.ckce(y, q, kernel=gaussian) == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(both(q, q) - gaussian(q, q), np.outer(q[:, 1], q[:, 1]), atol=1e-15)


def test_missing_predictions_are_named(tmp_path):
    import table1

    with pytest.raises(FileNotFoundError, match=r"must hold files .* got the data sets \[\]"):
        table1.main(["--quick", "--data", str(tmp_path), "--out", str(tmp_path)])
    write_predictions(tmp_path)
    arguments = ["--quick", "--data", str(tmp_path), "--out", str(tmp_path), "--sets", "cifar"]
    with pytest.raises(FileNotFoundError, match=r"of cifar, got the data sets \['toy'\]"):
        table1.main(arguments)


def test_brightness_needs_files(tmp_path, capsys):
    import brightness

    for arguments in ([], ["--data", str(tmp_path)]):
        with pytest.raises(SystemExit):
            brightness.main(["--out", str(tmp_path), *arguments])
        assert "_brightness.npz" in capsys.readouterr().err


# The committed results: what the page and the README quote.


@pytest.mark.parametrize(
    ("name", "key", "expected"),
    [
        ("covariate_shift", "ckce", 0.095),
        ("covariate_shift", "jkce", 0.46),
        ("covariate_shift", "ece", 0.19),
        ("kernel_robustness", "linear_gaussian", 0.095),
        ("kernel_robustness", "linear", 0.128),
        ("kernel_robustness", "gaussian", 0.236),
    ],
)
def test_full_run_reproduces_the_text(name, key, expected):
    assert cv(RESULTS, name, key) == pytest.approx(expected, rel=0.15)
    assert len(table(RESULTS / f"{name}.csv", "trial", "alpha")) == 20 * 25


def test_summary_follows_from_the_rows():
    import _common
    import synthetic

    rows = _common.read_csv(RESULTS / "covariate_shift.csv")
    for found in synthetic.summary(rows, ["ckce", "jkce", "ece"]):
        assert found["cv"] == pytest.approx(
            cv(RESULTS, "covariate_shift", found["metric"]), rel=1e-7
        )


def test_one_point_of_the_full_run():
    import synthetic

    rows = table(RESULTS / "covariate_shift.csv", "trial", "alpha")
    y, q = synthetic.draw(np.random.default_rng([0, 3, 12]), 0.0, 1000, 0.25)
    found = rows[("3", "0")]
    assert float(found["ckce"]) == pytest.approx(ckce.ckce(y, q, method="exact"), rel=1e-8)
    assert float(found["jkce"]) == pytest.approx(ckce.jkce(y, q), rel=1e-8)
    assert float(found["ece"]) == pytest.approx(ckce.ece(y, q, variant="simplex"), rel=1e-8)


def test_brightness_keeps_the_order():
    rows = table(RESULTS / "brightness.csv", "model", "level")
    small, large = (
        {
            key: [float(rows[(model, str(level))][key]) for level in range(-50, 51, 10)]
            for key in keys
        }
        for model, keys in (
            ("nips17_effnet_lite0", ("ckce", "ckce_debiased")),
            ("nips17_effnet_lite2", ("ckce", "ckce_debiased")),
        )
    )
    for key, (low, high), (low2, high2) in (
        ("ckce", ("0.0051", "0.0058"), ("0.0082", "0.0086")),
        ("ckce_debiased", ("0.0022", "0.0024"), ("0.0048", "0.0050")),
    ):
        assert all(a < b for a, b in zip(small[key], large[key], strict=True))
        assert (f"{min(small[key]):.4f}", f"{max(small[key]):.4f}") == (low, high)
        assert (f"{min(large[key]):.4f}", f"{max(large[key]):.4f}") == (low2, high2)


def test_the_page_quotes_the_results():
    import report

    page = report.PAGE.read_text()
    assert report.render(page, RESULTS) == page
    for name in set(report.re.findall(r"results/([\w.]+)", page)):
        assert (RESULTS / name).is_file(), name


# Predictions over a folder of images.


class Killed:
    """A model without torch; `run` is a program that dies in its third batch."""

    run = """
import os, signal, sys
from pathlib import Path
import numpy as np
sys.path.insert(0, sys.argv[1])
import imagenet

def batches(level, rows):
    for start in range(0, len(rows), 2):
        yield rows[start:start + 2], level

calls = 0
def predict(level):
    global calls
    calls += 1
    if calls == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return np.full((2, 3), [0.5, 0.25, 0.25])

folder = Path(sys.argv[2])
store = imagenet.open_store(folder / "x.partial.npy", (2, 4, 3), {"model": "a"})
imagenet.fill(store, (0, 10), batches, predict)
imagenet.finish(folder / "x.npz", store, labels=np.arange(4))
print(calls)
"""


def test_predictions_go_on_after_a_kill(tmp_path):
    def start(dies):
        return subprocess.run(
            [sys.executable, "-c", Killed.run, str(PAPER), str(tmp_path), str(dies)],
            capture_output=True,
            text=True,
        )

    assert start(3).returncode == -signal.SIGKILL
    assert not (tmp_path / "x.npz").exists()
    again = start(-1)
    assert again.stdout.strip() == "2"  # of four batches, two were there
    with np.load(tmp_path / "x.npz", allow_pickle=False) as file:
        assert (file["probs"] == [0.5, 0.25, 0.25]).all()


def test_predictions_of_two_models_do_not_mix(tmp_path):
    import imagenet

    path = tmp_path / "x.partial.npy"
    imagenet.open_store(path, (1, 4, 3), {"model": "a"})
    with pytest.raises(ValueError, match=r"another model \(a, now b\)"):
        imagenet.open_store(path, (1, 4, 3), {"model": "b"})


def write_images(folder, classes, each=3):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for name in classes:
        (folder / name).mkdir(parents=True)
        for i in range(each):
            pixels = rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)
            image.fromarray(pixels).save(folder / name / f"{name}_{i}.JPEG")


def test_validation_folder(tmp_path):
    import imagenet

    write_images(tmp_path / "val", ["b", "a", "c"], each=2)
    paths, labels = imagenet.validation_images(tmp_path / "val")
    assert [path.name for path in paths[:3]] == ["a_0.JPEG", "a_1.JPEG", "b_0.JPEG"]
    assert labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert imagenet.validation_images(tmp_path / "val", classes=list("cdba"))[1].tolist() == [
        3, 3, 2, 2, 0, 0,
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"1 of 3 folders .* the first is c"):
        imagenet.validation_images(tmp_path / "val", classes=["a", "b"])
    listing = tmp_path / "labels.txt"
    listing.write_text("a_1.JPEG 7\na_0.JPEG 2\n")
    paths, labels = imagenet.validation_images(tmp_path / "val" / "a", listing)
    assert labels.tolist() == [7, 2]
    assert paths[0].name == "a_1.JPEG"
    listing.write_text("a_1.JPEG 7\nb_9.JPEG 2\n")
    with pytest.raises(FileNotFoundError, match=r"names 1 files .* b_9.JPEG"):
        imagenet.validation_images(tmp_path / "val" / "a", listing)
    with pytest.raises(ValueError, match="one folder per class"):
        imagenet.validation_images(tmp_path / "val" / "a")


@pytest.fixture(scope="module")
def torch():
    found = pytest.importorskip("torch")
    threads = found.get_num_threads()
    found.set_num_threads(1)
    try:
        import torchvision  # noqa: F401
    except ImportError:
        pytest.skip("torchvision is not installed")
    except RuntimeError:
        # A torchvision built for CUDA beside a torch that is not cannot load its operators, and
        # does not import without these two. The models here use none of them.
        operators = found.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        found.ckce_test_operators = operators  # they live as long as this object
    yield found
    found.set_num_threads(threads)


def probabilities(model, transform, path, level=0):
    """One row, computed without the script's loops."""
    from PIL import Image, ImageEnhance

    image = ImageEnhance.Brightness(Image.open(path).convert("RGB")).enhance(1 + level / 100)
    return model(transform(image)[None])[0]


def test_timm_end_to_end(torch, tmp_path):
    timm = pytest.importorskip("timm")
    import imagenet
    import table1

    classes = timm.data.ImageNetInfo().label_names()[5:8]  # some of the 1000, with their numbers
    write_images(tmp_path / "val", classes)
    arguments = ["--images", str(tmp_path / "val"), "--data", str(tmp_path), "--weights", "random"]
    arguments += ["--model", "timm:test_resnet", "--batch-size", "4"]
    torch.manual_seed(0)
    imagenet.main([*arguments, "--name", "tiny", "--state"])
    torch.manual_seed(0)
    transform, predict, m = imagenet.load_timm("test_resnet", "random", "cpu")
    with np.load(tmp_path / "imagenet_tiny.npz", allow_pickle=False) as file:
        assert file["probs"].shape == (9, 1000) == (9, m)
        assert file["labels"].tolist() == [5, 5, 5, 6, 6, 6, 7, 7, 7]
        path = tmp_path / "val" / classes[1] / file["files"][4]
        expected = probabilities(predict, transform, path)
        np.testing.assert_allclose(file["probs"][4], expected, rtol=1e-4)
        value = ckce.ckce(file["labels"], file["probs"], method="fourier")
    state = ckce.CKCEAccumulator.load(tmp_path / "imagenet_tiny.state")
    assert state.compute() == pytest.approx(value, rel=1e-9)
    assert not list(tmp_path.glob("*partial*"))
    table1.main(["--quick", "--data", str(tmp_path), "--out", str(tmp_path)])
    rows = table(tmp_path / "table1.csv", "data", "model")
    assert ("imagenet", "tiny") in rows
    assert ("imagenet", "marginal (uniform)") in rows


# The parts of ViT-L-16-SigLIP-384, small: a timm image tower, a text tower, a logit bias.
TINY_CLIP = {
    "embed_dim": 16,
    "init_logit_bias": -10,
    "custom_text": True,
    "vision_cfg": {
        "image_size": 32,
        "timm_model_name": "test_vit",
        "timm_model_pretrained": False,
        "timm_pool": "",
        "timm_proj": "linear",
    },
    "text_cfg": {
        "context_length": 16,
        "vocab_size": 49408,  # of the tokeniser that comes with open_clip
        "width": 16,
        "heads": 2,
        "layers": 1,
        "no_causal_mask": True,
        "pool_type": "last",
    },
}


def test_open_clip_end_to_end(torch, tmp_path):
    if importlib.util.find_spec("open_clip") is None:
        pytest.skip("needs open_clip")
    import brightness
    import imagenet
    import open_clip

    (tmp_path / "ckce-tiny.json").write_text(json.dumps(TINY_CLIP))
    open_clip.add_model_config(tmp_path / "ckce-tiny.json")
    names, templates = ["goldfish", "hammerhead", "ostrich"], ["a photo of a {}.", "art of a {}."]
    (tmp_path / "names.txt").write_text("\n".join(names))
    (tmp_path / "templates.txt").write_text("\n".join(templates))
    write_images(tmp_path / "val", ["a", "b", "c"])
    arguments = ["--images", str(tmp_path / "val"), "--data", str(tmp_path), "--weights", "random"]
    arguments += ["--class-names", str(tmp_path / "names.txt"), "--brightness", "--limit", "7"]
    arguments += ["--templates", str(tmp_path / "templates.txt"), "--model", "open_clip:ckce-tiny"]
    torch.manual_seed(0)
    imagenet.main([*arguments, "--name", "clip"])

    torch.manual_seed(0)
    model, _, transform = open_clip.create_model_and_transforms("ckce-tiny")
    model.eval()
    with torch.no_grad():
        tokens = open_clip.get_tokenizer("ckce-tiny")(
            [t.format(n) for n in names for t in templates]
        )
        text = torch.nn.functional.normalize(model.encode_text(tokens), dim=-1)
        text = torch.nn.functional.normalize(text.reshape(3, 2, -1).mean(dim=1), dim=-1)

        def predict(batch):
            image = torch.nn.functional.normalize(model.encode_image(batch), dim=-1)
            return torch.softmax(model.logit_scale.exp() * image @ text.T, dim=-1).numpy()

        with np.load(tmp_path / "imagenet_clip_brightness.npz", allow_pickle=False) as file:
            assert file["probs"].shape == (11, 7, 3)
            assert file["levels"].tolist() == list(range(-50, 51, 10))
            for level in (0, 5, 10):
                name, label = file["files"][2], file["labels"][2]
                path = tmp_path / "val" / "abc"[label] / name
                expected = probabilities(predict, transform, path, file["levels"][level])
                np.testing.assert_allclose(file["probs"][level, 2], expected, rtol=1e-4)
            assert np.abs(file["probs"][0] - file["probs"][10]).max() > 1e-6
    brightness.main(["--data", str(tmp_path), "--out", str(tmp_path)])
    assert len(table(tmp_path / "brightness.csv", "model", "level")) == 11
