"""The Fourier estimator in PyTorch on the CPU, written as `numpy_fast.ckce_fourier`."""


def ckce_fourier(y_true, y_prob, frequencies, regularization=None, block=8192):
    """|(Phi'Phi + cI)^-1 Phi'R|_F^2, features [q | cos | sin]; NumPy arrays in, float out."""
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
