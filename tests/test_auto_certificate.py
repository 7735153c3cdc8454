"""What "auto" returns is worth its certificate, or comes with a warning."""

import numpy as np
import pytest

import ckce


def skewed(n, seed=0):
    """Fraud, clicks, rare diseases: predictions that span thousands of bandwidths."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.05, 6.2, n)
    return (rng.random(n) < p).astype(int), p


@pytest.mark.parametrize("function", [ckce.ckce, ckce.estimate])
def test_skewed_predictions_get_the_exact_kernel(function):
    y, p = skewed(12_000)
    assert float(function(y, p)) == pytest.approx(ckce.ckce(y, p, method="exact"), rel=1e-9)


def test_the_signature_names_the_method_that_was_taken():
    y, p = skewed(12_000)
    assert ckce.estimate(y, p).signature == ckce.estimate(y, p, method="exact").signature


def test_where_exact_is_too_dear_a_warning_says_so(monkeypatch):
    monkeypatch.setattr("ckce._metrics.ckce.affords_exact", lambda n, m: False)
    with pytest.warns(RuntimeWarning, match="span many bandwidths"):
        ckce.ckce(*skewed(12_000))


def test_a_good_factor_stays():
    rng = np.random.default_rng(1)
    p = rng.random(5000)
    y = (rng.random(5000) < p).astype(int)
    assert "|method:cholesky|" in ckce.estimate(y, p).signature
