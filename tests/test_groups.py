"""groups=: rows that depend on each other."""

import dataclasses
import math

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared import agree, cases, label_kernel, sample

import ckce
from ckce import _core, reference
from ckce._input.groups import LEAST_GROUPS, as_groups, recoded
from ckce._results.interval import effective_groups, interval, interval_above_0, standard_error
from ckce._results.student import student_quantile, student_tail

# Features of which the oracle knows the kernel; cholesky is checked through them.
KNOWN = [case for case in cases("ckce") if case.method != "cholesky"]
UNBIASED = [case for case in cases("jkce") if "biased" not in case.extra.values()]


def groups_of(n, count, seed=5):
    """Sizes from one row to many, rows of a group anywhere."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(count, 0.7))
    return np.concatenate([np.arange(count), rng.choice(count, n - count, p=weights)])[
        rng.permutation(n)
    ]


def estimate(case, y, q, **options):
    return ckce.estimate(y, q, **case.options(q.shape[1]), **options)


def check(case, y, q, groups, **options):
    e = estimate(case, y, q, groups=groups, **options)
    options = {"kernel": case.oracle_kernel(q, 0.7), "bandwidth": 0.7, "groups": groups, **options}
    term = reference.debias_term(y, q, **options)
    agree(e.value - e.debiased, term, term + e.value)
    assert e.se == pytest.approx(reference.standard_error(y, q, **options), rel=1e-7)
    assert e.floor is None
    assert e.n_groups == len(np.unique(groups))


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("case", KNOWN, ids=str)
def test_ckce_against_the_oracle(case, m):
    y, q = sample(150, m)
    check(case, y, q, groups_of(150, 30))
    check(case, y, q, groups_of(150, 12, seed=6), label_kernel=label_kernel(m))
    w = np.random.default_rng(1).uniform(0.2, 3, 150)
    check(case, y, q, groups_of(150, 20, seed=7), sample_weight=w)


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("case", UNBIASED, ids=str)
def test_jkce_against_the_oracle(case, m):
    y, q = sample(150, m)
    g = groups_of(150, 30)
    w = np.random.default_rng(1).uniform(0.2, 3, 150)
    for options in ({}, {"label_kernel": label_kernel(m)}, {"sample_weight": w}):
        value = case.oracle(y, q, groups=g, **options)
        agree(case(y, q, groups=g, **options), value, case.scale(y, q))
        e = ckce.jkce_estimate(
            y,
            q,
            **{k: v for k, v in case.options(m).items() if k != "estimator"},
            groups=g,
            **options,
        )
        agree(e.value, value, case.scale(y, q))
        se = reference.jkce_standard_error(
            y, q, kernel=case.oracle_kernel(q, 0.7), bandwidth=0.7, groups=g, **options
        )
        assert e.se == pytest.approx(se, rel=1e-9)


def test_the_oracle_against_mpmath():
    """Pair by pair, with the matrices of 60 digits."""
    y, q = sample(14, 3)
    g = np.arange(14) % 5
    with mpmath.workdps(60):
        rows = [[mpmath.mpf(float(x)) for x in row] for row in q]
        r = [[(j == y[i]) - rows[i][j] for j in range(3)] for i in range(14)]

        def k(a, b):
            apart = [x - z for x, z in zip(a, b, strict=True)]
            inner = mpmath.fdot(a, b)
            return inner + mpmath.exp(-mpmath.fdot(apart, apart) / (2 * mpmath.mpf(0.7) ** 2))

        gram = mpmath.matrix(14, 14)
        for i in range(14):
            for j in range(14):
                gram[i, j] = k(rows[i], rows[j])
        c = mpmath.mpf(14) ** mpmath.mpf("0.75")
        w = (gram + c * mpmath.eye(14)) ** -1
        a = w * gram * w
        pairs = [(i, j) for i in range(14) for j in range(14) if g[i] == g[j]]
        term = mpmath.fsum(a[i, j] * mpmath.fdot(r[i], r[j]) for i, j in pairs)
        apart = [(i, j) for i in range(14) for j in range(14) if g[i] != g[j]]
        unbiased = mpmath.fsum(gram[i, j] * mpmath.fdot(r[i], r[j]) for i, j in apart) / len(apart)
    found = reference.debias_term(y, q, bandwidth=0.7, regularization=14**-0.25, groups=g)
    assert found == pytest.approx(float(term), rel=1e-12)
    assert reference.jkce(y, q, bandwidth=0.7, groups=g) == pytest.approx(
        float(unbiased), rel=1e-12
    )


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("case", cases("ckce"), ids=str)
def test_rows_that_are_groups_of_their_own_change_nothing(case, m):
    y, q = sample(300, m)
    alone, grouped = estimate(case, y, q), estimate(case, y, q, groups=np.arange(300))
    assert grouped.value == alone.value
    assert grouped.debiased == pytest.approx(alone.debiased, rel=1e-12, abs=1e-12 * alone.value)
    assert grouped.se == pytest.approx(alone.se, rel=1e-12)
    low, high = grouped.interval()
    half = student_quantile(0.95, 299) * alone.se
    shift = half**2 / (2 * alone.value)
    assert high - low == pytest.approx(2 * math.hypot(half, shift), rel=1e-12)


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("case", UNBIASED, ids=str)
def test_jkce_of_rows_that_are_groups_of_their_own(case, m):
    y, q = sample(300, m)
    scale = case.scale(y, q)
    assert abs(case(y, q, groups=np.arange(300)) - case(y, q)) <= 1e-12 * scale


@pytest.mark.parametrize(
    ("kernel", "m", "lam", "bandwidth", "rank"),
    [
        ("linear_gaussian", 5, 2100**-0.25, 0.5, 512),  # random probes find the rest
        ("laplace", 3, 2100**-0.25, 0.5, 512),
        ("laplace", 10, 1e-3, 0.7, 2100),  # all: a third of the columns is too few
    ],
)
def test_the_iteration_has_the_debias_term_of_the_factorisation(kernel, m, lam, bandwidth, rank):
    y, q = sample(2100, m)
    g = groups_of(2100, 60)
    options = {
        "ridge": 2100 * lam,
        "tol": 1e-10,
        "full": True,
        "n_threads": 2,
        "progress": None,
        "groups": g,
        "kernel": _core.Kernel(kernel, bandwidth),
    }
    solved = [
        _core.ckce_exact(q, y, None, None, solver=solver, **options)
        for solver in (_core.Solver.factorise, _core.Solver.iterate)
    ]
    assert solved[1].debias == pytest.approx(solved[0].debias, abs=solved[1].debias_error)
    assert solved[1].debias_error <= 1e-3 * solved[1].debias
    assert solved[1].debias_rank <= rank
    assert math.isnan(solved[0].floor)
    assert math.isnan(solved[1].floor)


@pytest.mark.parametrize("kernel", ["linear_gaussian", "laplace"])
def test_large_groups_of_two_classes_are_problems_of_their_own(kernel):
    """Groups above 4096 rows go through cells or along the line, not through tiles of K."""
    y, q = sample(11_000, 2)
    g = np.minimum(np.arange(11_000) // 10, 11)  # the last has most rows
    exact, by_tiles = (
        function(
            q, y, None, None, groups=g, kernel=_core.Kernel(kernel, 0.4), full=True, n_threads=2,
            progress=None,
        )
        for function in (_core.jkce_two_classes, _core.jkce_exact)
    )  # fmt: skip
    assert exact.off_diagonal == pytest.approx(by_tiles.off_diagonal, rel=1e-9)
    assert exact.diagonal == pytest.approx(by_tiles.diagonal, rel=1e-9)
    assert exact.rows == pytest.approx(by_tiles.rows, rel=1e-7, abs=1e-9)


def test_large_groups_of_features():
    """Groups above a block of 1024 rows come in pieces."""
    y, q = sample(6000, 3)
    g = np.minimum(np.arange(6000) // 50, 40)
    e = ckce.estimate(y, q, method=ckce.Fourier(20), groups=g)
    omega = ckce.fourier_frequencies(3, 20, bandwidth=e.bandwidth)
    phi = reference.fourier_features(q, omega)
    r = np.eye(3)[y] - q
    inverse = np.linalg.inv(phi.T @ phi + 6000**0.75 * np.eye(phi.shape[1]))
    term = sum(np.sum((inverse @ phi[g == k].T @ r[g == k]) ** 2) for k in range(41))
    assert e.value - e.debiased == pytest.approx(term, rel=1e-9)


@pytest.mark.parametrize("case", cases("ckce"), ids=str)
def test_threads_do_not_change_a_bit(case):
    y, q = sample(1300, 4)
    g = groups_of(1300, 100)
    one, two, five = (estimate(case, y, q, groups=g, n_threads=t) for t in (1, 2, 5))
    assert one == two == five
    assert np.array_equal(one.influence, five.influence)


@pytest.mark.parametrize("m", [2, 4])
def test_threads_do_not_change_a_bit_of_jkce(m):
    y, q = sample(1300, m)
    g = groups_of(1300, 12)
    for method in ("exact", "fourier", "cholesky"):
        one, five = (ckce.jkce_estimate(y, q, method=method, groups=g, n_threads=t) for t in (1, 5))
        assert one == five


@pytest.mark.parametrize("case", [c for c in cases("ckce") if c.method != "cholesky"], ids=str)
def test_order_of_rows_and_names_of_groups_do_not_matter(case):
    y, q = sample(200, 4)
    g = groups_of(200, 25)
    order = np.random.default_rng(3).permutation(200)
    names = np.array([f"text {(7 * k) % 25}" for k in range(25)])
    base = estimate(case, y, q, groups=g)
    for other in (
        estimate(case, y[order], q[order], groups=g[order]),
        estimate(case, y, q, groups=names[g]),
    ):
        assert other.debiased == pytest.approx(base.debiased, rel=1e-10, abs=1e-12 * base.value)
        assert other.se == pytest.approx(base.se, rel=1e-9)
    assert estimate(case, y, q, groups=names[g]).signature == base.signature


@pytest.mark.parametrize("case", cases("ckce"), ids=str)
def test_integer_weights_are_repetitions_within_the_group(case):
    y, q = sample(120, 4)
    w, g = np.random.default_rng(2).integers(0, 4, 120), groups_of(120, 20)
    weighted = estimate(case, y, q, sample_weight=w, groups=g)
    repeated = estimate(case, np.repeat(y, w), np.repeat(q, w, axis=0), groups=np.repeat(g, w))
    agree(weighted.debiased, repeated.debiased, repeated.value)
    assert weighted.se == pytest.approx(repeated.se, rel=1e-9)
    assert weighted.n_groups == repeated.n_groups
    options = {"bandwidth": 0.7}
    a = ckce.jkce_estimate(y, q, sample_weight=w, groups=g, **options)
    b = ckce.jkce_estimate(
        np.repeat(y, w), np.repeat(q, w, axis=0), groups=np.repeat(g, w), **options
    )
    assert (a.value, a.se) == pytest.approx((b.value, b.se), rel=1e-9)


def test_se_is_the_derivative_with_respect_to_the_weights_of_groups():
    """psi of a group is the derivative of the value when its weight grows, lambda fixed."""
    y, q = sample(80, 3)
    g = groups_of(80, 12)
    e = ckce.estimate(y, q, bandwidth=0.7, groups=g)

    def value(k, step):
        w = np.ones(80)
        w[g == k] += step
        total = w.sum()
        # Of a distribution: weights of sum 80, so that c = lambda n stays.
        options = {"bandwidth": 0.7, "regularization": 80**-0.25}
        return reference.ckce(y, q, sample_weight=w * 80 / total, **options)

    slopes = [(value(k, 1e-4) - value(k, -1e-4)) / 2e-4 for k in range(12)]
    sums = [e.influence[g == k].sum() / 80 for k in range(12)]
    assert sums == pytest.approx(slopes, rel=1e-5, abs=1e-9)
    shares = np.bincount(g) / 80
    jackknifed = [slope / (1 - share) for slope, share in zip(slopes, shares, strict=True)]
    assert e.se == pytest.approx(math.sqrt(11 / 12 * sum(s**2 for s in jackknifed)), rel=1e-5)


def test_large_groups_count_as_fewer():
    """Four hand-computed groups: N = 10, N_g = 4, 3, 2, 1, sums of the influence 2, -3, 0, 1."""
    g = np.repeat([0, 1, 2, 3], [4, 3, 2, 1])
    psi = np.array([2.0, 0, 0, 0, -3, 0, 0, 0, 0, 1])
    by_hand = math.sqrt(3 / 4 * ((2 / 6) ** 2 + (3 / 7) ** 2 + (1 / 9) ** 2))
    assert standard_error(psi, None, g) == pytest.approx(by_hand, rel=1e-14)
    assert effective_groups(g, None) == pytest.approx(100 / 30, rel=1e-14)
    weights = np.repeat([0.25, 1 / 3, 0.5, 1.0], [4, 3, 2, 1])
    assert effective_groups(g, weights) == pytest.approx(4, rel=1e-14)
    assert interval(1.0, 0.1, 0.95, 4.0)[1] == pytest.approx(1 + 0.1 * 3.182446305284263, rel=1e-12)


def test_the_interval_of_a_negative_estimate_is_around_0():
    assert interval_above_0(-1.0, 0.1, 0.95) == interval(0.0, 0.1, 0.95)
    assert interval_above_0(0.5, 0.1, 0.95) == interval(0.5, 0.1, 0.95)
    assert all(map(math.isnan, interval_above_0(math.nan, 0.1, 0.95)))
    rng = np.random.default_rng(4)
    q = rng.dirichlet(np.ones(3), 200)
    y = (rng.random((200, 1)) > q.cumsum(axis=1)[:, :2]).sum(axis=1)
    e, j = ckce.estimate(y, q), ckce.jkce_estimate(y, q)
    assert max(e.debiased, j.value) < 0
    for value, raw, each in ((e.debiased, e.value, e), (j.value, j.biased, j)):
        z = 1.959963984540054
        assert each.interval() == pytest.approx(
            reference.norm_interval(value, raw, each.se, z), rel=1e-12
        )
        assert each.interval()[0] == pytest.approx(-z * each.se)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("sharpness", [1.0, 2.0])
def test_intervals_of_groups_reach_further_up(sharpness, level):
    rng = np.random.default_rng(4)
    g = groups_of(300, 30)
    pi = rng.dirichlet(np.ones(3), 300)
    y = (rng.random((300, 1)) > pi.cumsum(axis=1)[:, :2]).sum(axis=1)
    q = pi**sharpness / (pi**sharpness).sum(axis=1, keepdims=True)
    t = student_quantile(level, effective_groups(g, None) - 1)
    e, j = ckce.estimate(y, q, groups=g), ckce.jkce_estimate(y, q, groups=g)
    for value, raw, each in ((e.debiased, e.value, e), (j.value, j.biased, j)):
        low, high = each.interval(level)
        assert (low, high) == pytest.approx(
            reference.cluster_interval(value, raw, each.se, t), rel=1e-9
        )
        for theta in (low, high):  # the standard error is that at this truth
            noise = raw - max(value, 0)
            se = each.se * math.sqrt((theta + noise) / raw)
            assert abs(max(value, 0) - theta) == pytest.approx(t * se, rel=1e-9)
        assert high - max(value, 0) > max(value, 0) - low > 0


def test_intervals_of_groups_cover_where_the_error_grows_with_the_truth():
    """Intervals of one standard error covered 87 % of these; each group is a row and its copy."""
    rng = np.random.default_rng(8)
    g = np.repeat(np.arange(20), 2)
    covered = 0
    for _ in range(400):  # P(y = 1) = 1/2 whatever q is: E[(1 - q, q)'r] = +-1/12 four times
        q = np.repeat(rng.uniform(size=20), 2)
        y = np.repeat(rng.random(20) < 0.5, 2).astype(int)
        j = ckce.jkce_estimate(y, np.stack([1 - q, q], 1), groups=g, kernel="linear", n_threads=1)
        low, high = j.interval()
        covered += low <= 4 / 12**2 <= high
    assert 0.92 <= covered / 400 <= 0.99


def test_rows_of_weight_zero_leave_with_their_groups():
    y, q = sample(100, 3)
    g, w = np.arange(100) // 5, np.ones(100)
    w[:10] = 0.0
    e = ckce.estimate(y, q, sample_weight=w, groups=g)
    assert e.n_groups == 18
    kept = ckce.estimate(y[10:], q[10:], sample_weight=w[10:], groups=g[10:])
    assert e == kept


@pytest.mark.parametrize("reduction", ["top_label", "class_wise"])
def test_reductions_keep_groups(reduction):
    y, q = sample(200, 4)
    g = groups_of(200, 20)
    e = ckce.estimate(y, q, reduction=reduction, bandwidth=0.5, groups=g)
    parts = [reference.top_label(y, q)]
    if reduction == "class_wise":
        parts = [reference.one_vs_rest(y, q, j) for j in range(4)]
    options = {"bandwidth": 0.5, "groups": g}
    terms = [reference.debias_term(np.asarray(a, int), b, **options) for a, b in parts]
    assert e.value - e.debiased == pytest.approx(np.mean(terms), rel=1e-9)
    assert e.n_groups == 20


def test_a_callable_kernel():
    y, q = sample(60, 3)
    g = groups_of(60, 12)

    def kernel(p, s):
        return reference.gram("gaussian", p, s, 0.7)

    named = {"kernel": "gaussian", "bandwidth": 0.7}
    a, b = ckce.estimate(y, q, kernel=kernel, groups=g), ckce.estimate(y, q, groups=g, **named)
    assert a.debiased == pytest.approx(b.debiased, rel=1e-10)
    a = ckce.jkce_estimate(y, q, kernel=kernel, groups=g, method="exact")
    b = ckce.jkce_estimate(y, q, groups=g, method="exact", **named)
    assert (a.value, a.se) == pytest.approx((b.value, b.se), rel=1e-10)


# What may name groups.
IDS = {
    "integers": np.arange(60) // 3,
    "floats": np.arange(60) // 3 + 0.5,
    "strings": np.array([f"text {k // 3}" for k in range(60)]),
    "bytes": np.array([f"text {k // 3}".encode() for k in range(60)]),
    "objects": np.array([("text", k // 3) if k % 2 else k // 3 for k in range(60)], object),
    "dates": np.datetime64("2026-01-01") + np.arange(60) // 3,
    "a list": [k // 3 for k in range(60)],
    "a Series": pd.Series([f"text {k // 3}" for k in range(60)]),
    "categories": pd.Series([f"text {k // 3}" for k in range(60)], dtype="category"),
    "nullable": pd.Series([k // 3 for k in range(60)], dtype="Int64"),
}


@pytest.mark.parametrize("name", IDS)
def test_ids_of_any_kind(name):
    y, q = sample(60, 3)
    e = ckce.estimate(y, q, groups=IDS[name])
    count = len({tuple(each) if isinstance(each, tuple) else each for each in list(IDS[name])})
    assert e.n_groups == count
    if name != "objects":
        assert e == ckce.estimate(y, q, groups=IDS["integers"])


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40))
def test_codes_are_in_the_order_of_first_rows(ids):
    codes = as_groups(np.array(ids), len(ids))
    assert codes.tolist() == [list(dict.fromkeys(ids)).index(each) for each in ids]
    assert as_groups(np.array([str(each) for each in ids], object), len(ids)).tolist() == (
        codes.tolist()
    )


def test_few_groups_are_refused():
    assert len(set(recoded(np.arange(LEAST_GROUPS)))) == LEAST_GROUPS
    with pytest.raises(ValueError, match=f"at least {LEAST_GROUPS} groups, got {LEAST_GROUPS - 1}"):
        recoded(np.arange(LEAST_GROUPS - 1))


@pytest.mark.parametrize("df", [1, 2, 9, 49, 1000, 100_000])
def test_student(df):
    """P(|T| > t) by mpmath's incomplete beta function."""
    for t in (0.0, 1e-3, 0.5, 1.96, 7.0, 40.0):
        with mpmath.workdps(40):
            x = mpmath.mpf(df) / (df + mpmath.mpf(t) ** 2)
            exact = mpmath.betainc(mpmath.mpf(df) / 2, 0.5, 0, x, regularized=True)
        assert student_tail(t, df) == pytest.approx(float(exact), rel=1e-9, abs=1e-300)
    assert student_tail(math.inf, df) == 0.0
    for level in (0.5, 0.95, 0.999):
        assert student_tail(student_quantile(level, df), df) == pytest.approx(1 - level, rel=1e-9)


def test_what_is_said_of_groups():
    y, q = sample(200, 3)
    g = groups_of(200, 25)
    e = ckce.estimate(y, q, groups=g)
    assert "standard errors by 25 groups" in repr(e)
    assert "floor" not in repr(e)
    assert "|groups:25(" in e.signature
    j = ckce.jkce_estimate(y, q, groups=g)
    assert "standard errors by 25 groups" in repr(j)
    assert "|groups:25(" in j.signature
    v = ckce.evaluate(y, q, groups=g)
    assert "standard errors by 25 groups" in repr(v)
    assert v.to_dict()["ckce_floor"] is None
    assert v.to_dict()["n_groups"] == 25
    assert math.isnan(v.to_frame()["ckce_floor"].iloc[0])
    assert (v.ckce, v.jkce) == (e, ckce.jkce_estimate(y, q, groups=g))


MODELS = {"a": sample(240, 3)[1], "b": sample(240, 3, seed=2)[1]}
TRUTH, GROUPS = sample(240, 3)[0], groups_of(240, 30)


def test_pairs_of_models_by_group():
    c = ckce.compare(TRUTH, MODELS, groups=GROUPS)
    pair = c.pairs[0]
    psi = c.estimates[pair.first].influence - c.estimates[pair.second].influence
    se = reference.cluster_standard_error(psi, GROUPS)
    assert pair.own_se == pytest.approx(se, rel=1e-12)
    df = effective_groups(GROUPS, None) - 1
    assert 10 < df < 29
    assert pair.own_p_value == pytest.approx(student_tail(pair.own_difference / se, df), rel=1e-9)
    assert pair.se != pytest.approx(ckce.compare(TRUTH, MODELS).pairs[0].se, rel=1e-3)
    half = student_quantile(0.95, df) * pair.se
    assert (pair.low, pair.high) == pytest.approx((pair.difference - half, pair.difference + half))
    assert c.n_groups == 30
    assert c.to_dict()["n_groups"] == 30
    assert [m.ckce_floor for m in c.models] == [None, None]
    assert "floor" not in str(c)
    assert "standard errors by 30 groups" in str(c)
    assert c.to_frame()["ckce_floor"].isna().all()
    assert "below_floor" not in [rail.name for rail in c.warnings]


def test_shift_curves_by_group():
    sets = {name: [q, q**2 / (q**2).sum(axis=1, keepdims=True)] for name, q in MODELS.items()}
    curve = ckce.shift_curve(TRUTH, sets, groups=GROUPS)
    point = curve.points[0]
    e = ckce.estimate(TRUTH, MODELS["a"], groups=GROUPS)
    assert (point.ckce_debiased, point.ckce_se) == (e.debiased, e.se)
    assert (point.ckce_low, point.ckce_high) == e.interval()
    assert point.n_groups == 30
    assert "floor" not in str(curve)
    each = ckce.shift_curve(TRUTH, sets, groups=[GROUPS, np.arange(240) // 2])
    assert [p.n_groups for p in each.points] == [30, 120, 30, 120]
    assert "standard errors by 30 groups" in str(curve)
    assert "standard errors by 30 to 120 groups" in str(each)


def test_reports_by_group():
    for models in (MODELS, MODELS["a"]):
        page = ckce.report(TRUTH, models, groups=GROUPS, sensitivity=False)
        assert "Floor" not in page.html
        assert "by 30 groups" in page.html
        assert page.data["n_groups"] == 30
        assert all(model["ckce_floor"] is None for model in page.data["models"])
        assert all(model["p_value"] is None for model in page.data["models"])


def test_fields_that_groups_set():
    names = {f.name for f in dataclasses.fields(ckce.Estimate)}
    assert "n_groups" in names
    assert ckce.estimate(TRUTH, MODELS["a"]).n_groups is None
    assert ckce.jkce_estimate(TRUTH, MODELS["a"]).n_groups is None
