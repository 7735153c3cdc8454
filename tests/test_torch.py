"""The training loss: against literal torch, gradcheck, torch.compile, queue, refusals."""

import copy
import math
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from shared import sample

import ckce

torch = pytest.importorskip("torch")

integration = pytest.importorskip("ckce.integrations.torch")
step = pytest.importorskip("ckce.integrations._torch_step")
CKCELoss, ckce_loss = integration.CKCELoss, integration.ckce_loss

SIDES = [(debias, detach) for debias in (False, True) for detach in (False, True)]
GAMMA = torch.tensor(0.5, dtype=torch.float64)
METHODS = {"exact": "exact", "fourier": ckce.Fourier(20)}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads that wait for each other take longer than these small matrices."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def batch(n=48, m=3, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    logits = 1.5 * torch.randn(n, m, dtype=dtype, generator=generator)
    return logits.requires_grad_(), torch.randint(m, (n,), generator=generator)


def literal(q, y, debias, detach, bandwidth=0.5):
    """Tr(W B W K) of the paper, every matrix as it stands there; autograd does the rest."""
    n, m = q.shape
    points = q.detach() if detach else q
    squares = ((points[:, None] - points[None]) ** 2).sum(dim=2)
    k = points @ points.T + torch.exp(-squares / (2 * bandwidth**2))
    w = torch.linalg.inv(k + n**0.75 * torch.eye(n, dtype=q.dtype))
    psi = torch.eye(m, dtype=q.dtype)[y]
    b = q @ q.T + psi @ psi.T - q @ psi.T - psi @ q.T
    if debias:
        b = b - torch.diag(torch.diag(b))
    return torch.trace(w @ b @ w @ k)


def slope(value, at):
    return torch.autograd.grad(value, at)[0]


def differ(a, b):
    return float((a - b).abs().max() / b.abs().max())


@pytest.mark.parametrize(("debias", "detach"), SIDES)
@pytest.mark.parametrize("shape", [(48, 3), (40, 2), (33, 50)])
def test_against_autograd_through_the_literal_formula(shape, debias, detach):
    logits, y = batch(*shape)
    expected = literal(torch.softmax(logits, dim=1), y, debias, detach)
    value = ckce_loss(logits, y, bandwidth=0.5, debias=debias, detach_kernel=detach)
    assert value.item() == pytest.approx(expected.item(), rel=1e-10)
    assert differ(slope(value, logits), slope(expected, logits)) <= 1e-10


@pytest.mark.parametrize(("debias", "detach"), SIDES)
@pytest.mark.parametrize("method", METHODS)
def test_plain_torch_is_the_same(method, debias, detach):
    """The twin for other devices, which can only run on the CPU here."""
    logits, y = batch()
    y[::5] = -100
    drawn = integration._check_method(METHODS[method])
    twin = step._plain(logits, y, None, None, GAMMA, True, 0, *drawn, 0.2, debias, detach)
    settings = {"regularization": 0.2, "debias": debias, "detach_kernel": detach}
    value = ckce_loss(logits, y, bandwidth=0.5, method=METHODS[method], **settings)
    assert value.item() == pytest.approx(twin.item(), rel=1e-10)
    assert differ(slope(value, logits), slope(twin, logits)) <= 1e-10


@pytest.mark.parametrize("debias", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_gradcheck_and_gradients_of_gradients(method, debias):
    logits, y = batch(34, 2)

    def value(z):  # large enough for the tolerances of gradgradcheck
        return 1e4 * ckce_loss(
            z, y, bandwidth=0.5, method=METHODS[method], debias=debias, detach_kernel=False
        )

    assert torch.autograd.gradcheck(value, (logits,), fast_mode=True)
    assert torch.autograd.gradgradcheck(value, (logits,), fast_mode=True)


def test_operators_are_registered_well():
    logits, y = batch(40, 3)
    probs = torch.softmax(logits.detach(), dim=1).requires_grad_()
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    past = (probs.detach()[:9], y[:9])
    for preds, rows, k in ((logits, (None, None), 0), (probs, past, 0), (logits, (None, None), 2)):
        arguments = (preds, y, *rows, GAMMA, 0.9, preds is logits, k, 0, "gaussian", None)
        torch.library.opcheck(
            torch.ops.ckce.gradient.default, (*arguments, True, False), test_utils=checks
        )


def test_compile():
    logits, y = batch()
    eager, module = CKCELoss(2.0, queue=64), CKCELoss(2.0, queue=64)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    for _ in range(2):
        expected, value = eager(logits, y), compiled(logits, y)
        assert value.item() == pytest.approx(expected.item(), rel=1e-12)
        assert differ(slope(value, logits), slope(expected, logits)) <= 1e-12
    assert module.bandwidth_now == eager.bandwidth_now


def test_a_network_learns():
    """The step goes downhill, through a network in float32."""
    torch.manual_seed(0)
    x, (_, y) = torch.randn(64, 5), batch(64)
    model = torch.nn.Linear(5, 3)
    loss = CKCELoss(1.0, bandwidth=0.5, detach_kernel=False, debias=False)
    first = loss(model(x), y)
    first.backward()
    assert first.dtype == torch.float32
    assert first.shape == ()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.1 * parameter.grad
    assert loss(model(x), y) < first


def test_autocast_does_not_reach_the_inside():
    logits, y = batch(dtype=torch.float32)
    expected = ckce_loss(logits.double(), y, bandwidth=0.5).item()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = ckce_loss(logits, y, bandwidth=0.5)
    assert value.item() == pytest.approx(expected, rel=1e-6)
    half = ckce_loss(logits.bfloat16(), y, bandwidth=0.5)
    assert half.dtype == torch.float32
    wide = ckce_loss(logits.bfloat16().double(), y, bandwidth=0.5).item()
    assert half.item() == pytest.approx(wide, rel=1e-6)


def test_value_is_that_of_estimate():
    y, q = sample(60, 4)
    value = ckce_loss(torch.from_numpy(q), torch.from_numpy(y), input="probs")
    assert value.item() == pytest.approx(ckce.estimate(y, q).debiased, rel=1e-11)
    top = ckce_loss(torch.from_numpy(q), torch.from_numpy(y), input="probs", reduction=ckce.TopK(2))
    assert top.item() == pytest.approx(
        ckce.estimate(y, q, reduction=ckce.TopK(2)).debiased, rel=1e-9
    )


def test_shapes_and_ignored_targets():
    logits, y = batch(60, 3)
    target = y.clone()
    target[::3] = -100
    kept = target != -100
    expected = ckce_loss(logits[kept], y[kept], bandwidth=0.5)
    value = ckce_loss(logits, target, bandwidth=0.5)
    assert value.item() == expected.item()
    gradient = slope(value, logits)
    assert not gradient[::3].any()
    assert torch.equal(gradient[kept], slope(expected, logits)[kept])
    images = logits.reshape(5, 12, 3).movedim(-1, 1)
    assert ckce_loss(images, y.reshape(5, 12), bandwidth=0.5) == ckce_loss(logits, y, bandwidth=0.5)


def test_few_rows_give_zero_and_one_warning():
    logits, y = batch(31)
    step._warn_of_few_rows.cache_clear()
    module = CKCELoss(1.0)
    with pytest.warns(RuntimeWarning, match="fewer than 32 rows that count; pass queue="):
        module(logits, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = module(logits, y)  # it is said once
    value.backward()
    assert value.item() == 0.0
    assert not logits.grad.any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert CKCELoss(1.0, queue=64)(logits, y).item() == 0.0


@pytest.mark.parametrize("queue", [0, 20])
def test_few_rows_are_checked(queue):
    logits, y = batch(8)
    probs = torch.softmax(logits.detach(), dim=1)
    module = CKCELoss(1.0, bandwidth=0.5, queue=queue)
    with pytest.raises(ValueError, match=r"target row 0 is 5\d, expected 0\.\.2, or -100"):
        module(logits, y + 50)
    with pytest.raises(ValueError, match="preds row 0 column 1 is nan"):
        module(torch.tensor([[0.5, math.nan, 0.0]]), y[:1])
    with pytest.raises(ValueError, match=r"preds row 0 sums to 0\.9"):
        CKCELoss(1.0, bandwidth=0.5, queue=queue, input="probs")(0.9 * probs, y)
    assert CKCELoss(1.0, queue=20)(logits, torch.full((8,), -100)).item() == 0.0


class Elsewhere(torch.Tensor):
    """Says that it is on another device."""

    device = SimpleNamespace(type="cuda")


def test_targets_are_checked_on_other_devices():
    logits, y = batch(8)
    preds = logits.detach().as_subclass(Elsewhere)
    settings = (0, "gaussian", None, True, True)
    with pytest.raises(ValueError, match=r"target row 0 is 5\d, expected 0\.\.2"):
        step.value_of(preds, y + 50, (None, None), GAMMA, 1.0, True, 0, settings)


def test_queue_keeps_detached_rows():
    module = CKCELoss(1.0, bandwidth=0.5, queue=40)
    batches = [batch(20, seed=seed) for seed in range(4)]
    values = [module(logits, y) for logits, y in batches]
    assert values[0].item() == 0.0
    rows = torch.cat([logits for logits, _ in (batches[3], batches[2], batches[1])])
    labels = torch.cat([y for _, y in (batches[3], batches[2], batches[1])])
    expected = ckce_loss(rows, labels, bandwidth=0.5)
    assert values[3].item() == pytest.approx(expected.item(), rel=1e-12)
    gradients = torch.autograd.grad(values[3], [logits for logits, _ in batches], allow_unused=True)
    assert gradients[:3] == (None, None, None)
    assert torch.allclose(gradients[3], slope(expected, batches[3][0]), rtol=1e-12)
    module.eval()
    before = module.queued_probs.clone()
    module(*batches[0])
    assert torch.equal(module.queued_probs, before)
    assert module.half().queued_probs.dtype == torch.float64
    module(*batches[0])  # and its rows still sum to 1
    assert torch.equal(copy.deepcopy(module).queued_probs, before)


def test_moving_average_of_medians():
    module = CKCELoss(1.0)
    medians = []
    for seed in range(3):
        logits, y = batch(40, seed=seed)
        module(logits, y)
        medians.append(ckce.median_bandwidth(torch.softmax(logits, 1).detach().numpy()))
    expected = 0.9 * (0.9 * medians[0] + 0.1 * medians[1]) + 0.1 * medians[2]
    assert module.bandwidth_now.item() == pytest.approx(expected, rel=1e-12)
    module.eval()
    module(*batch(40, seed=7))
    assert module.bandwidth_now.item() == pytest.approx(expected, rel=1e-12)
    other = CKCELoss(1.0)
    other.load_state_dict(module.state_dict())
    assert other.bandwidth_now == module.bandwidth_now
    rows = torch.softmax(logits.detach(), dim=1)
    assert step._plain_median(rows, y).item() == pytest.approx(medians[2], rel=1e-12)
    assert step._plain_median(rows[:1], y[:1]).item() == 1.0


def test_large_batches_need_no_square_matrix(monkeypatch):
    """Above 2000 rows the core iterates, and the functional form in torch is not used."""
    logits, y = batch(2100, 3)
    monkeypatch.setattr(step, "_plain", None)
    value = ckce_loss(logits, y, bandwidth=0.5)
    value.backward()
    expected = ckce.gradient(
        y.numpy(),
        logits.detach().numpy(),
        input="logits",
        bandwidth=0.5,
        detach_kernel=True,
        method="exact",
    )
    assert value.item() == pytest.approx(expected[0], rel=1e-12)
    assert np.abs(logits.grad.numpy() - expected[1]).max() <= 1e-12 * np.abs(expected[1]).max()


REFUSED = [
    ({"weight": -1.0}, ValueError, "weight must be at least 0 and finite, got -1.0"),
    ({"weight": "1"}, TypeError, "weight must be a number, got '1'"),
    ({"bandwidth": 0.0}, ValueError, "bandwidth must be positive and finite, got 0.0"),
    ({"bandwidth": "median"}, ValueError, "bandwidth must be a number or 'ema_median'"),
    ({"regularization": -0.1}, ValueError, "regularization must be positive and finite"),
    ({"method": "cholesky"}, ValueError, "method must be 'exact', 'fourier' or ckce.Fourier"),
    ({"method": ckce.Fourier(precision="mixed")}, ValueError, "method must draw its frequencies"),
    ({"input": "log_probs"}, ValueError, "input must be 'logits' or 'probs', got 'log_probs'"),
    ({"queue": -1}, ValueError, "queue must be a number of rows, at least 0, got -1"),
    ({"reduction": "top_label"}, TypeError, "reduction must be None or ckce.TopK"),
    ({"debias": 1}, TypeError, "debias must be True or False, got 1"),
]


@pytest.mark.parametrize(("options", "error", "words"), REFUSED)
def test_refused_options(options, error, words):
    with pytest.raises(error, match=words):
        CKCELoss(**options)


def test_refused_data():
    logits, y = batch()
    module = CKCELoss(1.0)
    late, ignored = logits.detach().clone(), y.clone()
    late[5, 1], ignored[:3] = torch.inf, -100
    for preds, target, error, words in [
        (torch.softmax(logits, 1), y, ValueError, "preds must hold logits, got rows of prob"),
        (logits, y + 3, ValueError, r"target row 0 is \d, expected 0..2, or -100 for a row"),
        (late, ignored, ValueError, r"preds row 5 column 1 is inf \(1 entry is NaN or inf\)"),
        (logits[:, :1], y, ValueError, "preds must have a column for every class"),
        (logits * torch.nan, y, ValueError, "preds row 0 column 0 is nan"),
        (logits, y.double(), TypeError, "target must hold integers, got torch.float64"),
        (logits, y[:-1], ValueError, r"preds and target must have shapes \(N, C, ...\)"),
    ]:
        with pytest.raises(error, match=words):
            module(preds, target)
    with pytest.raises(ValueError, match="preds row 0 "):
        CKCELoss(1.0, bandwidth=1.0, input="probs")(logits, y)
    with pytest.raises(ValueError, match=r"sums to 1.*; pass probabilities in float32"):
        CKCELoss(1.0, bandwidth=1.0, input="probs")(torch.softmax(8 * logits, 1).bfloat16(), y)
    with pytest.raises(ValueError, match="target row 0 is"):
        CKCELoss(1.0, reduction=ckce.TopK(2))(logits, y + 3)
    with pytest.raises(ValueError, match=r"reduction=TopK\(3\) needs more than 3 classes, got 3"):
        CKCELoss(1.0, reduction=ckce.TopK(3))(logits, y)
    assert "weight=1.0, bandwidth='ema_median'" in repr(module)
    assert "queue=5" in repr(CKCELoss(1.0, queue=5, bandwidth=0.5))


def test_example_runs():
    pytest.importorskip("sklearn")
    script = Path(__file__).parent.parent / "examples" / "train.py"
    assert len(script.read_text().splitlines()) <= 40
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "with CKCE" in done.stdout
    assert "cross entropy" in done.stdout
