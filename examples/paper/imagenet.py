"""Predictions of the paper's two networks over an ImageNet validation folder, as files for run.py.

pip install torch timm open_clip_torch transformers
python examples/paper/imagenet.py --images VAL --model resnet --data DIR
python examples/paper/imagenet.py --images VAL --model vit --data DIR
python examples/paper/imagenet.py --images VAL --model resnet --data DIR --brightness
python examples/paper/imagenet.py --images VAL --model vit --data DIR --brightness
python examples/paper/run.py --data DIR

VAL holds one folder per class, named by its WordNet id (n01440764, ...), or all images in one folder
together with --labels FILE, whose lines are "<file name> <class from 0>". `resnet` is resnet50.a1_in1k of
timm at 224 pixels; `vit` is ViT-L-16-SigLIP-384 of open_clip, zero-shot: the softmax over the classes of
the scaled cosines between the image and the mean of each class's prompts. timm:NAME and
open_clip:NAME:TAG are any other model of these libraries.

Rows are written to DIR as they are computed. A run that was killed goes on where it was when it is
started again; two runs with different settings do not mix. The result is imagenet_<model>.npz with
`probs` (n, m), `labels` and `files`, or imagenet_<model>_brightness.npz with `probs` (11, n, m) and
`levels`. With --state the rows are also summed up in imagenet_<model>.state, a ckce.CKCEAccumulator with the
paper's D = 100, which is small, merges with others, and needs no rows any more.
"""

import argparse
import hashlib
import json
import os
import re
from pathlib import Path

import numpy as np
from _common import progress

import ckce

LEVELS = tuple(range(-50, 51, 10))  # percent
MODELS = {"resnet": "timm:resnet50.a1_in1k", "vit": "open_clip:ViT-L-16-SigLIP-384:webli"}
ENDINGS = {".jpeg", ".jpg", ".png"}


def validation_images(folder, labels=None, classes=None):
    """Paths and labels of a validation folder, in a fixed order.

    `labels` is the file for a folder without subfolders; `classes` lists the names of the subfolders in
    the order of the classes, of which some may be missing.
    """
    if labels is not None:
        lines = [line.split() for line in Path(labels).read_text().splitlines() if line.strip()]
        paths = [folder / name for name, _ in lines]
        missing = [path for path in paths if not path.is_file()]
        if missing:
            raise FileNotFoundError(
                f"{labels} names {len(missing)} files that are not in {folder}, the first is "
                f"{missing[0].name}"
            )
        return paths, np.array([int(label) for _, label in lines])
    found = sorted(child.name for child in folder.iterdir() if child.is_dir())
    if not found:
        raise ValueError(
            f"--images must hold one folder per class, or needs --labels, got {folder}"
        )
    if classes is None:
        classes = imagenet_classes() if all(re.fullmatch(r"n\d{8}", n) for n in found) else found
    number = {name: i for i, name in enumerate(classes)}
    unknown = [name for name in found if name not in number]
    if unknown:
        raise ValueError(
            f"{len(unknown)} of {len(found)} folders of {folder} are no class, the first is {unknown[0]}"
        )
    pairs = [
        (path, number[name])
        for name in found
        for path in sorted((folder / name).iterdir())
        if path.suffix.lower() in ENDINGS
    ]
    return [path for path, _ in pairs], np.array([label for _, label in pairs])


def imagenet_classes():
    """The 1000 WordNet ids in the order in which networks number them."""
    from timm.data import ImageNetInfo

    return ImageNetInfo().label_names()


def load_timm(name, weights, device):
    """(transform of a PIL image, batch -> probabilities, number of classes) of a timm model."""
    import timm
    import torch

    overlay = {"file": weights} if weights not in ("pretrained", "random") else None
    model = timm.create_model(name, pretrained=weights != "random", pretrained_cfg_overlay=overlay)
    model = model.eval().to(device)
    config = timm.data.resolve_model_data_config(
        model
    )  # the training size: 224 for resnet50.a1_in1k

    @torch.inference_mode()
    def predict(batch):
        return model(batch.to(device)).double().softmax(dim=1).cpu().numpy()

    return timm.data.create_transform(**config, is_training=False), predict, model.num_classes


def load_open_clip(name, weights, device, class_names, templates):
    """The same of an open_clip model as a zero-shot classifier: its prompts are the classes."""
    import open_clip
    import torch

    model, _, transform = open_clip.create_model_and_transforms(
        name, pretrained=None if weights == "random" else weights, device=device
    )
    model.eval()
    text = open_clip.build_zero_shot_classifier(
        model, open_clip.get_tokenizer(name), class_names, templates, device=device
    )

    @torch.inference_mode()
    def predict(batch):
        # SigLIP's bias is the same for all classes and falls out of the softmax.
        image = model.encode_image(batch.to(device), normalize=True)
        logits = model.logit_scale.exp() * image @ text
        return logits.double().softmax(dim=1).cpu().numpy()

    return transform, predict, len(class_names)


def load_model(options):
    """The model that the command line asks for."""
    library, _, name = MODELS.get(options.model, options.model).partition(":")
    name, _, tag = name.partition(":")
    if library == "timm":
        return load_timm(name, options.weights or "pretrained", options.device)
    if library != "open_clip":
        raise ValueError(
            f"--model must be resnet, vit, timm:NAME or open_clip:NAME:TAG, got {options.model}"
        )
    import open_clip

    names = lines(options.class_names) or open_clip.IMAGENET_CLASSNAMES
    templates = lines(options.templates) or open_clip.OPENAI_IMAGENET_TEMPLATES
    return load_open_clip(name, options.weights or tag, options.device, names, templates)


def lines(path):
    """Lines of a file that are not empty; None without a file."""
    return None if path is None else [x for x in path.read_text().splitlines() if x.strip()]


class Images:
    """Item i is (i, the transformed image), its brightness changed by `level` percent."""

    def __init__(self, paths, transform, level):
        self.paths, self.transform, self.level = paths, transform, level

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        from PIL import Image, ImageEnhance

        with Image.open(self.paths[i]) as image:
            image = image.convert("RGB")
        if self.level:
            image = ImageEnhance.Brightness(image).enhance(1 + self.level / 100)
        return i, self.transform(image)


def open_store(path, shape, settings):
    """The memory-mapped file of a run, new or gone on with; rows not yet computed are NaN."""
    written = path.with_suffix(".json")
    if written.exists():
        before = json.loads(written.read_text())
        changed = [key for key in settings if before.get(key) != settings[key]]
        if changed:
            raise ValueError(
                f"{path} belongs to a run with another {changed[0]} ({before.get(changed[0])}, now "
                f"{settings[changed[0]]}); delete {path} and {written.name} to start again"
            )
        return np.lib.format.open_memmap(path, mode="r+")
    store = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    store[:] = np.nan
    store.flush()
    written.write_text(json.dumps(settings))  # last: without it the file counts as not begun
    return store


def missing_rows(rows):
    """Indices of the rows that are not complete; a row at a time keeps memory flat."""
    return [i for i, row in enumerate(rows) if np.isnan(row).any()]


def fill(store, levels, batches, predict):
    """Compute what is missing; `batches(level, rows)` gives (rows, batch) pairs."""
    for rows, level in zip(store, levels, strict=True):
        missing = missing_rows(rows)
        for where, batch in batches(level, missing):
            probs = predict(batch)
            if not np.isfinite(probs).all():
                raise ValueError(
                    f"the model gave probabilities that are not finite, at level {level}"
                )
            rows[where] = probs
        store.flush()


def summed(labels, probs, seed, block=1024):
    """The rows in an accumulator; the bandwidth is the median of a random sample of them."""
    sample = np.sort(np.random.default_rng(seed).permutation(len(labels))[:2000])
    accumulator = ckce.CKCEAccumulator.from_sample(labels[sample], probs[sample])
    for start in range(0, len(labels), block):
        accumulator.update(labels[start : start + block], probs[start : start + block])
    return accumulator


def finish(target, store, **arrays):
    """The result under its name only when it is whole."""
    partial = target.with_suffix(".tmp")
    with open(partial, "wb") as file:
        np.savez(file, probs=store, **arrays)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, target)


def remove_scratch(target):
    """What a run leaves beside its result."""
    for ending in (".partial.npy", ".partial.json", ".tmp"):
        target.with_suffix(ending).unlink(missing_ok=True)


def predictions(target, paths, labels, levels, model, settings, options):
    """Write `target` from the images; `levels` is None for the images as they are."""
    import torch

    transform, predict, m = model
    if labels.max() >= m:
        raise ValueError(f"labels must be below the model's {m} classes, got {labels.max()}")

    def batches(level, rows):
        loader = torch.utils.data.DataLoader(
            torch.utils.data.Subset(Images(paths, transform, level), rows),
            batch_size=options.batch_size,
            num_workers=options.workers,
        )
        for where, batch in progress(loader, f"{target.stem} {level:+d} %"):
            yield where.numpy(), batch

    scratch = target.with_suffix(".partial.npy")
    store = open_store(scratch, (len(levels or (0,)), len(paths), m), settings)
    fill(store, levels or (0,), batches, predict)
    if options.state:
        summed(labels, store[0], options.seed).save(target.with_suffix(".state"))
    arrays = {"labels": labels, "files": np.array([path.name for path in paths])}
    if levels is None:
        finish(target, store[0], **arrays)
    else:
        finish(target, store, levels=np.array(levels), **arrays)
    del store
    remove_scratch(target)


def main(argv=None):
    """Compute one prediction file."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--images", type=Path, required=True, help="validation folder")
    made.add_argument("--labels", type=Path, help="file with lines '<file name> <class from 0>'")
    made.add_argument("--classes", type=Path, help="names of the class folders, in order (WordNet)")
    made.add_argument(
        "--model", default="resnet", help="resnet, vit, timm:NAME, open_clip:NAME:TAG"
    )
    made.add_argument("--name", help="name of the model in the file (that of --model)")
    made.add_argument("--weights", help="file of weights, or random (the published ones)")
    made.add_argument("--class-names", type=Path, help="file of class names for the prompts")
    made.add_argument("--templates", type=Path, help="file of prompts, such as 'a photo of a {}.'")
    made.add_argument("--brightness", action="store_true", help="11 levels from -50 to +50 %%")
    made.add_argument("--limit", type=int, help="random images (all; 1000 with --brightness)")
    made.add_argument("--seed", type=int, default=0, help="seed of the choice of images (0)")
    made.add_argument("--data", type=Path, required=True, help="folder of the prediction files")
    made.add_argument(
        "--state", action="store_true", help="also save a CKCEAccumulator of the rows"
    )
    made.add_argument("--batch-size", type=int, default=64)
    made.add_argument("--workers", type=int, default=0, help="processes that read images")
    made.add_argument("--device", default="cpu", help="cpu, cuda, ...")
    options = made.parse_args(argv)
    if options.state and options.brightness:
        made.error("--state belongs to the images as they are, not to --brightness")

    paths, labels = validation_images(options.images, options.labels, lines(options.classes))
    limit = options.limit or (1000 if options.brightness else len(paths))
    if limit < len(paths):
        rng = np.random.default_rng(options.seed)
        chosen = np.sort(rng.choice(len(paths), limit, replace=False))
        paths, labels = [paths[i] for i in chosen], labels[chosen]
    name = options.name or re.sub(r"\W+", "-", options.model)
    target = options.data / f"imagenet_{name}{'_brightness' if options.brightness else ''}.npz"
    if target.exists():
        remove_scratch(target)  # of a run that was killed between its last two steps
        print(f"{target} is there already; delete it to compute it again")
        return
    options.data.mkdir(parents=True, exist_ok=True)
    listing = "\n".join(f"{path.name} {label}" for path, label in zip(paths, labels, strict=True))
    settings = {
        "model": MODELS.get(options.model, options.model),
        "weights": options.weights,
        "images": hashlib.sha256(listing.encode()).hexdigest(),
        "class names": str(lines(options.class_names)),
        "templates": str(lines(options.templates)),
    }
    levels = LEVELS if options.brightness else None
    model = load_model(options)
    predictions(target, paths, labels, levels, model, settings, options)


if __name__ == "__main__":
    main()
