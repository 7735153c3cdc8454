"""Methods are objects: frozen, comparable, picklable; a word stands for its defaults."""

import copy
import dataclasses
import inspect
import pickle

import numpy as np
import pytest
from shared import NEW_CORE, landmarks, sample

import ckce
from ckce._input.kernels import KERNELS
from ckce._methods.auto import METHODS
from ckce._methods.method import Rows

Y, Q = sample(60, 3)
FREQUENCIES = np.array([[0.1, 1 / 3, -2e-17], [1e300, 0.0, 5.0]])
POINTS = landmarks(3)
MANY = np.random.default_rng(0).dirichlet(np.ones(20), 200)  # more than NumPy prints

# Every option of every method, away from its default.
OBJECTS = [
    ckce.Exact(),
    ckce.Exact(tol=1e-6),
    ckce.Fourier(),
    ckce.Fourier(400),
    ckce.Fourier(sampler="sobol"),
    ckce.Fourier(precision="mixed"),
    ckce.Fourier(frequencies=FREQUENCIES),
    ckce.Fourier(frequencies=FREQUENCIES, precision="mixed"),
    ckce.Fourier(frequencies=FREQUENCIES[:1]),
    ckce.Cholesky(),
    ckce.Cholesky(100),
    ckce.Cholesky(tol=1e-6),
    ckce.Cholesky(pivoting="random"),
    ckce.Landmarks(),
    ckce.Landmarks(50),
    ckce.Landmarks(POINTS),
    ckce.Landmarks(POINTS[1:]),
    ckce.Landmarks(MANY),
    ckce.Blocks(),
    ckce.Blocks(2),
]


def short(method):
    return repr(method)[:40]


def pasted(text):
    return eval(text, {**{name: getattr(ckce, name) for name in ckce.__all__}, "array": np.array})


@pytest.mark.parametrize("method", OBJECTS, ids=short)
def test_copies_are_equal(method):
    copies = [
        pasted(repr(method)),
        pickle.loads(pickle.dumps(method)),
        copy.copy(method),
        copy.deepcopy(method),
        dataclasses.replace(method),
        type(method)(**{f.name: getattr(method, f.name) for f in dataclasses.fields(method)}),
    ]
    for twin in copies:
        assert twin == method
        assert hash(twin) == hash(method)
        assert repr(twin) == repr(method)
        assert type(twin) is type(method)


def test_every_option_is_here():
    for method in METHODS.values():
        own = [each for each in OBJECTS if type(each) is method]
        for field in dataclasses.fields(method):
            assert any(getattr(each, field.name) is not field.default for each in own)


def test_others_are_different():
    assert len(set(OBJECTS)) == len(OBJECTS)
    for i, one in enumerate(OBJECTS):
        assert one != "exact"
        assert one != None  # noqa: E711
        for two in OBJECTS[:i]:
            assert one != two


@pytest.mark.parametrize("method", OBJECTS, ids=short)
def test_frozen(method):
    for field in dataclasses.fields(method):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(method, field.name, getattr(method, field.name))
        value = getattr(method, field.name)
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[0] = 0.5


@pytest.mark.parametrize("make", [ckce.Landmarks, lambda array: ckce.Fourier(frequencies=array)])
def test_arrays_are_copied(make):
    mine = POINTS.copy()
    method, before = make(mine), make(POINTS)
    mine[:] = 0.0
    assert method == before
    assert mine.flags.writeable


def test_layout_does_not_make_another_method():
    for array in (FREQUENCIES, np.asfortranarray(FREQUENCIES), FREQUENCIES.tolist()):
        assert ckce.Fourier(frequencies=array) == ckce.Fourier(frequencies=FREQUENCIES)
        assert hash(ckce.Fourier(frequencies=array)) == hash(ckce.Fourier(frequencies=FREQUENCIES))
    assert ckce.Landmarks(POINTS.tolist()) == ckce.Landmarks(np.asfortranarray(POINTS))
    assert ckce.Landmarks(np.int64(50)) == ckce.Landmarks(50)
    assert repr(ckce.Landmarks(np.int64(50))) == "Landmarks(points=50)"
    assert repr(ckce.Exact(np.float32(0.25))) == "Exact(tol=0.25)"


def test_repr_names_what_is_not_the_default():
    assert repr(ckce.Fourier()) == "Fourier()"
    assert repr(ckce.Fourier(400, "sobol")) == "Fourier(n_frequencies=400, sampler='sobol')"
    assert (
        repr(ckce.Cholesky(9, 1e-6, "random")) == "Cholesky(rank=9, tol=1e-06, pivoting='random')"
    )
    assert repr(ckce.Blocks(2)) == "Blocks(size=2)"
    given = ckce.Landmarks([[0.1, 0.9], [0.3, 0.7]])
    assert " ".join(repr(given).split()) == "Landmarks(points=array([[0.1, 0.9], [0.3, 0.7]]))"
    with np.printoptions(precision=2, threshold=3):  # of the caller
        assert pasted(repr(ckce.Landmarks(MANY))) == ckce.Landmarks(MANY)


def functions(method):
    """Public functions that take the method by its word."""
    jkce = {"jkce": ckce.jkce, "jkce_estimate": ckce.jkce_estimate}
    if method == "blocks":
        return jkce
    found = {**jkce, "ckce": ckce.ckce, "estimate": ckce.estimate, "evaluate": ckce.evaluate}
    if method != "exact":
        found["calibration_test"] = ckce.calibration_test
    return found


def outcome(result):
    """Something of every result that can be compared."""
    return result.to_dict() if hasattr(result, "to_dict") else result


@pytest.mark.parametrize("word", METHODS)
def test_words_are_objects_with_defaults(word):
    if word == "landmarks" and not NEW_CORE:
        pytest.skip("the old core has no Features")
    for name, function in functions(word).items():
        by_word, by_object = (function(Y, Q, method=m) for m in (word, METHODS[word]()))
        assert outcome(by_word) == outcome(by_object), name
    if word != "blocks":
        models = {"a": Q, "b": Q[::-1]}
        c, d = (ckce.compare(Y, models, method=m) for m in (word, METHODS[word]()))
        assert c == d
        s, t = (ckce.shift_curve(Y, {"a": [Q, Q]}, method=m) for m in (word, METHODS[word]()))
        assert s == t


@pytest.mark.parametrize("word", METHODS)
def test_words_are_names(word):
    method = METHODS[word]
    assert (method.word, method.__name__) == (word, word.capitalize())
    assert getattr(ckce, method.__name__) is method
    assert issubclass(method, type(OBJECTS[0]).__mro__[1])


CALLABLE = {"kernel": lambda p, q: p @ q.T + 1.0}
LAPLACE, LINEAR = {"kernel": "laplace"}, {"kernel": "linear"}
# What a method cannot do: (function, method, options, words).
CANNOT = [
    ("jkce", ckce.Exact(tol=1e-3), {}, "exact JKCE is a sum"),
    ("jkce_estimate", ckce.Exact(tol=1e-3), {}, "exact JKCE is a sum"),
    ("calibration_test", ckce.Exact(), {}, "needs two classes and a Gaussian kernel"),
    ("ckce", ckce.Fourier(), CALLABLE, "a callable kernel needs method='exact'"),
    ("ckce", ckce.Fourier(), LINEAR, "kernel='linear' has no Fourier features"),
    ("ckce", ckce.Fourier(sampler="orthogonal"), LAPLACE, "needs a Gaussian kernel"),
    ("ckce", ckce.Fourier(frequencies=np.ones((2, 4))), {}, "frequencies must have shape"),
    ("ckce", ckce.Fourier(frequencies=np.ones((2, 3))), {"bandwidth": 1.0}, "used as given"),
    ("jkce", ckce.Fourier(precision="mixed"), {}, "precision='mixed' is for ckce"),
    ("calibration_test", ckce.Fourier(precision="mixed"), {}, "precision='mixed' is for ckce"),
    ("ckce", ckce.Cholesky(), CALLABLE, "a callable kernel needs method='exact'"),
    ("ckce", ckce.Landmarks(5), CALLABLE, "a callable kernel needs method='exact'"),
    ("ckce", ckce.Landmarks(5), LINEAR, "kernel='linear' needs no features, got landmarks"),
    ("ckce", ckce.Landmarks([[0.5, 0.5]]), {}, "landmarks must have shape"),
    ("jkce", ckce.Blocks(), CALLABLE, "a callable kernel needs method='exact'"),
    ("jkce", ckce.Blocks(61), {}, "size of ckce.Blocks must be from 2 to the number of samples"),
    *((name, ckce.Blocks(2), {}, "method must be one of") for name in ("ckce", "estimate")),
]


@pytest.mark.parametrize(
    ("name", "method", "options", "words"), CANNOT, ids=lambda value: f"{value!r:.25}"
)
def test_each_refuses_what_it_cannot_do(name, method, options, words):
    with pytest.raises(ValueError, match=words):
        getattr(ckce, name)(Y, Q, method=method, **options)


FIELDS = {field.name for method in METHODS.values() for field in dataclasses.fields(method)}


def test_no_public_function_takes_an_option_of_a_method():
    kept = {"fourier_frequencies": {"n_frequencies", "sampler"}}  # they are its own
    for name in ckce.__all__:
        thing = getattr(ckce, name)
        if thing in METHODS.values():
            continue
        parameters = set(inspect.signature(thing).parameters) if callable(thing) else set()
        if inspect.isfunction(thing) or name == "CKCEAccumulator":
            assert not parameters & FIELDS - kept.get(name, set()), name


@pytest.mark.parametrize("field", sorted(FIELDS | {"block_size", "landmarks", "n_landmarks"}))
def test_flat_options_are_gone(field):
    for function in (ckce.ckce, ckce.estimate, ckce.jkce, ckce.evaluate, ckce.calibration_test):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{field}'"):
            function(Y, Q, **{field: 5})
    for method in METHODS.values():
        if field not in {each.name for each in dataclasses.fields(method)}:
            with pytest.raises(TypeError, match=f"unexpected keyword argument '{field}'"):
                method(**{field: 5})


@pytest.mark.parametrize("kernel", KERNELS)
def test_evaluate_hands_one_method_to_both(kernel):
    """JKCE has no use for the tolerance of exact CKCE, or for mixed precision."""
    methods = [ckce.Exact(tol=1e-6)]
    if KERNELS[kernel].spectrum == "gaussian":
        methods.append(ckce.Fourier(20, precision="mixed"))
    for method in methods:
        e = ckce.evaluate(Y, Q, method=method, kernel=kernel)
        assert e.ckce.value == ckce.ckce(Y, Q, method=method, kernel=kernel)
        plain = ckce.Exact() if method.word == "exact" else ckce.Fourier(20)
        assert e.jkce.value == ckce.jkce_estimate(Y, Q, method=plain, kernel=kernel).value


def test_methods_know_their_price():
    """In doubles beyond the input; more options cost more."""
    rows = Rows(np.full((10_000, 10), 0.1), KERNELS["gaussian"], 0.5, 0, 2)
    for method in OBJECTS:
        assert 0.0 < method.price(rows, full=True) < np.inf
    for small, large in [
        (ckce.Fourier(10), ckce.Fourier(1000)),
        (ckce.Cholesky(10), ckce.Cholesky(1000)),
        (ckce.Landmarks(10), ckce.Landmarks(1000)),
        (ckce.Blocks(10), ckce.Blocks(1000)),
    ]:
        assert small.price(rows, full=True) < large.price(rows, full=True)


def test_threads_share_a_fixed_amount_of_memory():
    """More threads than the buffers of which take 1 GiB do not work at once, and are not priced."""
    probs = np.broadcast_to(0.001, (500_000, 1000))  # 41 MB for each thread

    def price(method, n_threads):
        return 8.0 * method.price(Rows(probs, KERNELS["gaussian"], 0.5, 0, n_threads), full=True)

    for method in (ckce.Fourier(), ckce.Blocks(5000)):
        assert price(method, 2) < price(method, 64)
        assert price(method, 64) < price(method, 1) + 2**30
        assert price(method, 1024) == price(method, 64)
