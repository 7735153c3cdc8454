"""Reliability diagrams: the numbers and the band; pictures, which cut nothing off and change nothing global."""

import subprocess
import sys
import warnings
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

import ckce
from ckce._plots.differences import differences
from ckce._plots.pairs import matrix
from ckce._plots.style import in_digits, round_numbers, square
from ckce._results import LETTERS, short, shortened


def sample(n=500, m=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, m, n), rng.dirichlet(np.ones(m), n)


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield pyplot
    pyplot.close("all")


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_top_label_numbers(strategy):
    y, q = sample()
    curve = ckce.reliability_diagram(y, q, strategy=strategy, n_bins=10).curves[0]
    e = ckce.ece_estimate(y, q, variant="top_label", strategy=strategy, n_bins=10)
    kept = e.counts > 0
    assert curve.counts.tolist() == e.counts[kept].tolist()
    assert curve.confidence == pytest.approx(e.confidence[kept])
    assert curve.frequency == pytest.approx(e.frequency[kept])
    assert curve.histogram.sum() == pytest.approx(1.0)
    assert ((curve.low <= curve.frequency) & (curve.frequency <= curve.high)).all()
    assert ((curve.low >= 0) & (curve.high <= 1)).all()
    assert (curve.edges[:, 0] <= curve.confidence).all()
    assert (curve.confidence <= curve.edges[:, 1]).all()


def test_wilson_band_by_hand():
    # 8 of 10: the textbook interval.
    curve = ckce.reliability_diagram([1] * 8 + [0] * 2, [0.7] * 10, target=1).curves[0]
    assert curve.low == pytest.approx([0.490162], abs=1e-6)
    assert curve.high == pytest.approx([0.943318], abs=1e-6)
    wide = ckce.reliability_diagram([1] * 8 + [0] * 2, [0.7] * 10, target=1, level=0.99).curves[0]
    assert wide.low < curve.low


def test_one_class():
    y, q = sample()
    diagram = ckce.reliability_diagram(y, q, target=2)
    expected = ckce.reliability_diagram(y == 2, q[:, 2], target=1)
    assert diagram.curves[0].frequency == pytest.approx(expected.curves[0].frequency)
    names = np.array(["b", "c", "a"])
    named = ckce.reliability_diagram(names[y], q, target="a", labels=names)
    assert named.curves[0].frequency.tolist() == diagram.curves[0].frequency.tolist()
    assert named.target == "class a"


def test_weights_are_copies():
    y, q = sample(60)
    weights = np.arange(60) % 3
    one = ckce.reliability_diagram(y, q, sample_weight=weights, n_bins=5).curves[0]
    other = ckce.reliability_diagram(
        np.repeat(y, weights), np.repeat(q, weights, axis=0), n_bins=5
    ).curves[0]
    for name in ("confidence", "frequency", "low", "high", "histogram"):
        assert getattr(one, name) == pytest.approx(getattr(other, name))


def test_several_models():
    y, q = sample()
    diagram = ckce.reliability_diagram(y, {"a": q, "b": q[:, ::-1]})
    assert [curve.name for curve in diagram.curves] == ["a", "b"]
    assert diagram["b"] is diagram.curves[1]
    assert [line.split()[0] for line in repr(diagram).splitlines()[1:]] == ["model", "a", "b"]
    with pytest.raises(KeyError):
        diagram["c"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": 3}, "target must be 'top_label', 'class_wise' or one of"),
        ({"strategy": "even"}, "strategy must be one of"),
        ({"level": 1.0}, "level must be between 0 and 1"),
        ({"n_bins": 0}, "n_bins must be at least 1"),
    ],
)
def test_refuses(options, words):
    with pytest.raises(ValueError, match=words):
        ckce.reliability_diagram(*sample(), **options)
    with pytest.raises(ValueError, match="at least one model"):
        ckce.reliability_diagram([0], {})


def test_plot_changes_nothing_global(plt):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    ax = ckce.reliability_diagram(*sample()).plot()
    ax.figure.canvas.draw()
    assert dict(mpl.rcParams) == before


def test_plot_draws_into_given_axes(plt):
    figure, axes = plt.subplots(1, 2, layout="constrained")
    y, q = sample()
    diagram = ckce.reliability_diagram(y, {"a": q, "b": q[:, ::-1]})
    assert diagram.plot(axes[0]) is axes[0]
    assert diagram.plot(axes[1], histogram=False, counts=False) is axes[1]
    assert len(figure.axes) == 3  # one histogram
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["a", "b"]
    assert len(plt.get_fignums()) == 1
    figure.canvas.draw()
    # Nothing of the picture sticks out of it.
    box = figure.get_tightbbox()
    assert box.x0 >= 0
    assert box.y0 >= 0


def sticks_out(figure):
    """Whether axes, labels or legends leave the figure."""
    figure.canvas.draw()
    page = figure.bbox
    boxes = [ax.get_tightbbox() for ax in figure.axes]
    boxes += [legend.get_tightbbox() for legend in figure.legends]
    return any(
        box.x0 < -0.5 or box.y0 < -0.5 or box.x1 > page.x1 + 0.5 or box.y1 > page.y1 + 0.5
        for box in boxes
    )


@pytest.mark.parametrize("models", [1, 2, 5, 14])
def test_nothing_is_cut_off(plt, models):
    y, q = sample()
    powers = {f"model number {k}": q ** (1 + k / 9) for k in range(models)}
    named = {name: p / p.sum(axis=1, keepdims=True) for name, p in powers.items()}
    ax = ckce.reliability_diagram(y, named).plot()
    figure = ax.figure
    assert not sticks_out(figure)
    assert figure.axes[1].get_xlabel() == "Confidence"
    lines = [line for line in ax.lines if line.get_label() in named]
    assert len({line.get_color() for line in lines}) == models  # no colour twice
    bands = len(ax.collections) - models
    assert bands == (models if models <= 3 else 0)


LONG = {
    f"resnet50-imagenet21k-finetuned-cifar100-lr0.00{k:02d}-wd5e-4-seed{k:04d}-epoch200": 1 + k / 8
    for k in range(20)
}


def many_models(n=200):
    """Twenty models with names of 70 characters."""
    y, q = sample(n)
    return y, {name: q**k / (q**k).sum(axis=1, keepdims=True) for name, k in LONG.items()}


@pytest.mark.parametrize("histogram", [True, False])
@pytest.mark.parametrize("models", [1, 2, 8, 20])
def test_long_names_stay_beside_the_axes(plt, models, histogram):
    y, named = many_models()
    named = dict(list(named.items())[:models])
    ax = ckce.reliability_diagram(y, named).plot(histogram=histogram)
    figure = ax.figure
    assert not sticks_out(figure)
    (legend,) = figure.legends
    assert legend.get_window_extent().x0 >= ax.get_window_extent().x1
    words = [text.get_text() for text in legend.get_texts()]
    assert len(set(words)) == models
    assert max(map(len, words)) <= LETTERS
    assert ax.get_window_extent().width > 0.4 * 3.3 * figure.dpi  # the axes did not give way


def test_more_names_than_axes_of_a_caller_hold_stand_beside_them(plt):
    y, named = many_models()
    _, axes = plt.subplots(1, 2, figsize=(9, 4))
    ax = ckce.reliability_diagram(y, dict(list(named.items())[:8])).plot(axes[1])
    ax.figure.canvas.draw()
    assert ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1


def test_a_grid_of_many_models_has_room_for_its_legend(plt):
    y, named = many_models()
    axes = ckce.reliability_diagram(y, named, target="class_wise").plot()
    assert not sticks_out(axes[0].figure)
    assert axes[0].get_window_extent().height > 80


@pytest.mark.parametrize("draw", ["plot", "plot_differences", "plot_pairs"])
def test_comparisons_of_many_models_are_legible(plt, draw):
    y, named = many_models()
    comparison = ckce.compare(y, named)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a layout that was not applied
        ax = getattr(comparison, draw)()
        figure = ax.figure
        assert not sticks_out(figure)
    assert max(figure.get_size_inches()) < 13
    assert ax.get_window_extent().width > 200
    if draw == "plot_differences":
        assert len(ax.get_yticklabels()) == 19
        assert ax.get_title(loc="left").startswith("19 of 190 pairs: neighbours in the ranking")


def luminance(colour):
    """As contrast is defined for pages (WCAG)."""
    from matplotlib.colors import to_rgb

    linear = [c / 12.92 if c <= 0.04 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def test_numbers_of_pairs_contrast_with_their_cells(plt):
    names = [f"model {k}" for k in range(12)]
    strength = np.geomspace(1.5, 40, 66) * np.resize([1, -1], 66)
    pairs = [
        SimpleNamespace(first=a, second=b, z=(z,), difference=z / 10, significant=True, verdict="")
        for (a, b), z in zip(combinations(names, 2), strength, strict=True)
    ]
    ax = matrix(names, pairs, None)
    ax.figure.canvas.draw()
    image, z = ax.images[0], ax.images[0].get_array()
    assert len(ax.texts) == 132
    for text in ax.texts:
        column, row = text.get_position()
        cell = luminance(image.cmap(image.norm(z[row, column])))
        low, high = sorted([cell, luminance(text.get_color())])
        assert (high + 0.05) / (low + 0.05) > 4
        side = ax.transData.transform((1, 0)) - ax.transData.transform((0, 0))
        assert text.get_window_extent().width < side[0]


def test_short_names_stay_different():
    assert short("a" * LETTERS) == "a" * LETTERS
    assert short("abcdefgh", 5) == "ab\u2026gh"
    middle = [f"{'a' * 40}{k}{'b' * 40}" for k in range(3)]
    for names in (list(LONG), middle, [f"{'a' * 40}{'b' * k}{'c' * 40}" for k in (1, 2)]):
        for most in (LETTERS, 18):
            found = shortened(names, most)
            assert list(found) == names
            assert len(set(found.values())) == len(names)
            assert max(map(len, found.values())) <= most + 4


def test_ticks_are_round_and_differ():

    def around(*x, low=0.0, high=0.0):
        return square([(x, x, [each - low for each in x], [each + high for each in x])])

    assert around(0.1, 0.9) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert around(0.5) == around(0.01, low=0.1, high=0.6) == around(0.1, 0.9)
    assert around(0.001, 0.083) == pytest.approx([0, 0.02, 0.04, 0.06, 0.08, 0.1])
    assert around(0.91, 0.9999) == pytest.approx([0.9, 0.92, 0.94, 0.96, 0.98, 1])
    narrowest = square([([0.01, 0.05], [0.01, 0.04], [0.0, -0.6], [0.02, 0.7])])
    assert narrowest == pytest.approx([0, 0.01, 0.02, 0.03, 0.04, 0.05])
    for low, high in ((0, 1e-4), (-3e-5, 1.2e-4), (0.1, 0.103), (-40, 700)):
        ticks = round_numbers(low, high)
        words = in_digits(ticks)
        assert [float(w) for w in words] == pytest.approx(ticks, abs=1e-9 * (high - low))
        assert len(set(words)) == len(words)
    assert in_digits([0.0]) == ["0"]


def rare(n=3000):
    """Labels that are seldom 1, and twice their probabilities."""
    rng = np.random.default_rng(0)
    truth = rng.beta(1, 80, n)
    return (rng.random(n) < truth).astype(int), np.minimum(2 * truth, 1)


@pytest.mark.parametrize("target", ["top_label", 1])
def test_a_rare_class_is_not_in_a_corner(plt, target):
    y, p = rare()
    diagram = ckce.reliability_diagram(y, p, target=target)
    ax = diagram.plot()
    (low, high), curve = ax.get_xlim(), diagram.curves[0]
    assert (low, high) == ax.get_ylim()  # the diagonal is one
    assert low < min(curve.confidence.min(), curve.frequency.min())
    assert max(curve.confidence.max(), curve.frequency.max()) < high
    assert np.ptp(curve.confidence) > 0.4 * (high - low)
    assert ckce.reliability_diagram(*sample()).plot().get_xlim() == pytest.approx((-0.02, 1.02))


def test_the_curve_of_a_rare_class_is_not_in_a_corner(plt):
    ax = ckce.witness(*rare()).plot()
    (low, high), line = ax.get_xlim(), ax.lines[-1].get_xdata()
    assert (low, high) == ax.get_ylim()
    assert np.ptp(line) > 0.4 * (high - low)


@pytest.mark.parametrize("layout", [None, "tight", "constrained"])
def test_the_histogram_stays_inside_the_axes_that_were_given(plt, layout):
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout=layout)
    outer = axes[0].get_position()
    y, q = sample()
    ax = ckce.reliability_diagram(y, q).plot(ax=axes[0])
    below = figure.axes[2]
    assert not sticks_out(figure)
    upper, lower = ax.get_position(), below.get_position()
    assert (lower.x0, lower.x1) == pytest.approx(
        (upper.x0, upper.x1), abs=1e-3
    )  # one above the other
    assert lower.y1 < upper.y0
    if layout is None:
        assert lower.y0 >= outer.y0 - 1e-6
        assert upper.y1 <= outer.y1 + 1e-6


def test_the_histogram_stays_inside_axes_placed_by_hand(plt):
    figure = plt.figure(figsize=(5, 5))
    ax = figure.add_axes((0.2, 0.2, 0.6, 0.6))
    ckce.reliability_diagram(*sample()).plot(ax=ax)
    assert not sticks_out(figure)
    assert figure.axes[1].get_position().y0 >= 0.2 - 1e-6


def test_class_wise(plt):
    y, q = sample()
    diagram = ckce.reliability_diagram(y, {"a": q, "b": q[:, ::-1]}, target="class_wise")
    assert [curve.target for curve in diagram.curves] == 2 * ["class 0", "class 1", "class 2"]
    alone = ckce.reliability_diagram(y, q, target=1).curves[0]
    assert diagram.curves[1].frequency.tolist() == alone.frequency.tolist()
    axes = diagram.plot()
    assert [ax.get_title() for ax in axes] == ["class 0", "class 1", "class 2"]
    assert not sticks_out(axes[0].figure)
    assert [text.get_text() for text in axes[0].figure.legends[0].get_texts()] == ["a", "b"]
    with pytest.raises(ValueError, match="ax must be None with target='class_wise'"):
        diagram.plot(ax=axes[0])
    display = ckce.CalibrationDisplay.from_predictions(y, q, target="class_wise")
    assert display.figure_ is display.ax_[0].figure
    assert "class 2" in repr(diagram)


def test_a_grid_of_many_classes_shows_the_worst(plt):
    y, q = sample(400, 20)
    axes = ckce.reliability_diagram(y, q, target="class_wise").plot()
    assert len(axes) == 16
    assert "16 of 20 classes" in axes[0].figure.get_supxlabel()


def test_small_bins_are_labelled(plt):
    ax = ckce.reliability_diagram([0, 1, 1], [0.1, 0.6, 0.9], target=1, n_bins=3).plot()
    assert [text.get_text() for text in ax.texts] == ["1", "1", "1"]


def test_headings():
    y, q = sample()
    for target, words in (("top_label", "the top label"), (1, "class 1")):
        diagram = ckce.reliability_diagram(y, q, target=target)
        assert repr(diagram).startswith(f"reliability of {words}, quantile bins\n")


def test_numbers_of_small_bins_do_not_overlap(plt):
    y, q = sample(279)
    ax = ckce.reliability_diagram(y, q).plot()
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) >= 3
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_the_band_of_one_bin_is_a_line(plt):
    y, _ = sample()
    diagram = ckce.reliability_diagram(y, np.tile(np.bincount(y) / len(y), (len(y), 1)))
    (curve,) = diagram.curves
    ax = diagram.plot()
    ax.figure.canvas.draw()
    (low, high) = ax.collections[0].get_segments()[0][:, 1]
    assert (low, high) == (curve.low[0], curve.high[0])


def test_a_difference_that_is_not_shown_says_why(plt):
    pair = {"first": "a", "second": "b", "difference": 0.2, "better": None, "verdict": "not shown"}
    clear, beside = (SimpleNamespace(**pair, low=low, high=0.3, p_holm=0.11) for low in (-0.1, 0.1))
    ax = differences([clear, beside], 0.95, None)
    words = [label.get_text() for label in ax.get_yticklabels()]
    assert words == ["a - b: not shown", "a - b: not shown (p = 0.11)"]


def test_display(plt):
    y, q = sample()
    display = ckce.CalibrationDisplay.from_predictions(y, q, name="forest", target=1, n_bins=5)
    assert display.diagram.curves[0].name == "forest"
    assert display.ax_.figure is display.figure_
    figure, ax = plt.subplots()
    assert ckce.CalibrationDisplay.from_predictions(y, {"a": q, "b": q}, ax=ax).ax_ is ax
    assert len(ax.get_legend().get_texts()) == 2
    assert figure is ax.figure


def test_display_from_estimator(plt):
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 2))
    y = np.where(x[:, 0] + rng.normal(size=300) > 0, "yes", "no")
    model = linear_model.LogisticRegression().fit(x, y)
    display = ckce.CalibrationDisplay.from_estimator(model, x, y, target="yes")
    expected = ckce.reliability_diagram(y == "yes", model.predict_proba(x), target=1)
    assert display.diagram.curves[0].name == "LogisticRegression"
    frequency = expected.curves[0].frequency.tolist()
    assert display.diagram.curves[0].frequency.tolist() == frequency


def test_import_loads_numpy_only():
    heavy = ["matplotlib", "pandas", "scipy", "sklearn", "torch"]
    code = f"import sys, ckce; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
