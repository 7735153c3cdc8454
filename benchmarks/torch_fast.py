"""CKCE and JKCE in PyTorch on the CPU; NumPy arrays in, float out.

Fourier as `numpy_fast` has it, the exact kernel and the top k as `numpy_plain` has them.
"""


def ckce_fourier(y_true, y_prob, frequencies, regularization=None, block=8192):
    """|(Phi'Phi + cI)^-1 Phi'R|_F^2, features [q | cos | sin]."""
    import torch

    with torch.inference_mode():
        labels, probs = torch.from_numpy(y_true), torch.from_numpy(y_prob)
        w = torch.from_numpy(frequencies).T.contiguous()
        n, m = probs.shape
        n_waves = w.shape[1]
        d = m + 2 * n_waves
        c = (n**-0.25 if regularization is None else regularization) * n
        buffer = torch.empty(min(n, block), d, dtype=torch.float64)
        gram = torch.zeros(d, d, dtype=torch.float64)
        by_label = torch.zeros(m, d, dtype=torch.float64)
        for start in range(0, n, block):
            q = probs[start : start + block]
            phi = buffer[: len(q)]
            angles = q @ w
            phi[:, :m] = q
            torch.cos(angles, out=phi[:, m : m + n_waves])
            torch.sin(angles, out=phi[:, m + n_waves :])
            phi[:, m:] *= n_waves**-0.5
            gram.addmm_(phi.T, phi)
            by_label.index_add_(0, labels[start : start + block], phi)
        s = by_label.T - gram[:, :m]
        gram.diagonal().add_(c)
        x = torch.cholesky_solve(s, torch.linalg.cholesky(gram))
        return float((x * x).sum())


def top_k(y_true, y_prob, k, block=8192):
    """The k largest entries of each row in order, and the rest; labels by rank."""
    import torch

    with torch.inference_mode():
        labels, probs = torch.from_numpy(y_true), torch.from_numpy(y_prob)
        kept = torch.empty(len(probs), k + 1, dtype=torch.float64)
        ranks = torch.empty(len(probs), dtype=torch.int64)
        for start in range(0, len(probs), block):
            rows = slice(start, start + block)
            entries, columns = torch.topk(probs[rows], k)
            kept[rows, :k] = entries.double()
            kept[rows, k] = (1.0 - kept[rows, :k].sum(1)).clamp(min=0.0)
            hits = columns == labels[rows, None]
            ranks[rows] = torch.where(hits.any(1), hits.int().argmax(1), k)
        return ranks.numpy(), kept.numpy()


def _residuals(labels, probs):
    r = -probs
    r[range(len(r)), labels] += 1.0
    return r


def _kernel(p, q, bandwidth):
    import torch

    squares = (p * p).sum(1)[:, None] + (q * q).sum(1)
    linear = p @ q.T
    return linear + torch.exp((2.0 * linear - squares) / (2.0 * bandwidth**2))


def ckce_exact(y_true, y_prob, bandwidth):
    """Tr V'KV with (K + cI) V = R by one Cholesky factorisation."""
    import torch

    with torch.inference_mode():
        probs = torch.from_numpy(y_prob)
        k = _kernel(probs, probs, bandwidth)
        ridged = k.clone()
        ridged.diagonal().add_(len(probs) ** 0.75)
        v = torch.cholesky_solve(
            _residuals(torch.from_numpy(y_true), probs), torch.linalg.cholesky(ridged)
        )
        return float((v * (k @ v)).sum())


def jkce_exact(y_true, y_prob, bandwidth, block=1024):
    """Unbiased JKCE, one block of rows at a time."""
    import torch

    with torch.inference_mode():
        probs = torch.from_numpy(y_prob)
        n = len(probs)
        r = _residuals(torch.from_numpy(y_true), probs)
        total = 0.0
        for start in range(0, n, block):
            rows = slice(start, start + block)
            total += float((r[rows] * (_kernel(probs[rows], probs, bandwidth) @ r)).sum())
        own = ((probs * probs).sum(1) + 1.0) * (r * r).sum(1)
        return (total - float(own.sum())) / (n * (n - 1))
