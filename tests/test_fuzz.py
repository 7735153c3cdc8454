"""A short run of the fuzzer, all of its old findings, and an accumulator driven at random."""

import tempfile
from functools import partial
from pathlib import Path
from typing import ClassVar

import fuzz
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
)
from shared import agree, landmarks, sample

import ckce
from ckce import reference

pytestmark = pytest.mark.filterwarnings("ignore:landmarks leave out")
CRASHES = sorted(fuzz.CRASHES.glob("*.bin"))


@pytest.mark.parametrize("path", CRASHES, ids=lambda path: path.name)
def test_old_findings(path):
    fuzz.TARGETS[path.name.split("-")[0]](path.read_bytes())


@pytest.mark.parametrize("target", fuzz.TARGETS)
def test_seeds_are_valid(target):
    for data in fuzz.seeds(target):
        rows = fuzz.TARGETS[target](data)
        if target == "scan":
            assert rows == 6
        elif target == "logs":
            assert rows > 0
        else:
            assert ckce.CKCEAccumulator.from_bytes(data).to_bytes() == data
            assert fuzz.repaired(data) == data


@pytest.mark.parametrize("target", fuzz.TARGETS)
def test_mutated_bytes_are_refused_or_read(target):
    assert fuzz.fuzz(target, seconds=20, seed=0, most=1500) > 50


M = 3
FREQUENCIES = ckce.fourier_frequencies(M, 4, bandwidth=0.6)
ROWS = sample(3000, M)
LANDMARKS = landmarks(M, bandwidth=0.6)


class AccumulatorMachine(RuleBasedStateMachine):
    """Any order of update, merge, save, load, copy, reset; the model is the list of the rows."""

    states = Bundle("states")
    m = M
    rows: ClassVar = ROWS
    options: ClassVar = {"method": ckce.Fourier(frequencies=FREQUENCIES)}
    of_all = staticmethod(partial(ckce.ckce, **options))

    def __init__(self):
        super().__init__()
        self.living = []

    def keep(self, acc, parts):
        self.living.append((acc, parts))
        return acc, parts

    @rule(target=states)
    def new(self):
        return self.keep(ckce.CKCEAccumulator(self.m, **self.options), [])

    @initialize(target=states)
    def first(self):
        return self.new()

    @rule(state=states, begin=st.integers(0, 2900), n=st.integers(0, 1100), weighted=st.booleans())
    def update(self, state, begin, n, weighted):
        acc, parts = state
        y, q = (array[begin : begin + n] for array in self.rows)
        w = 1.0 + np.arange(len(y)) % 3 if weighted else np.ones(len(y))
        acc.update(y, q, sample_weight=w if weighted else None)
        parts.append((y, q, w))

    @rule(state=states, bad=st.sampled_from(["nan", "label", "sum", "columns", "weight"]))
    def refuse(self, state, bad):
        acc, _ = state
        y, q, w = self.rows[0][:5].copy(), self.rows[1][:5].copy(), np.ones(5)
        if bad == "nan":
            q[4, 1] = np.nan
        elif bad == "label":
            y[4] = self.m
        elif bad == "sum":
            q[4] *= 1.1
        elif bad == "columns":
            q = np.column_stack([q, np.zeros(5)])
        else:
            w[4] = -1.0
        before = acc.to_bytes()
        with pytest.raises(ValueError, match=r"row 4|columns|classes"):
            acc.update(y, q, sample_weight=w)
        assert acc.to_bytes() == before

    @rule(state=states, other=consumes(states))
    def merge(self, state, other):
        before = other[0].to_bytes()
        state[0].merge(other[0])
        state[1].extend(list(other[1]))
        if other[0] is not state[0]:
            assert other[0].to_bytes() == before

    @rule(target=states, state=states)
    def copy(self, state):
        return self.keep(state[0].copy(), list(state[1]))

    @rule(target=states, state=consumes(states))
    def through_bytes(self, state):
        data = state[0].to_bytes()
        loaded = ckce.CKCEAccumulator.from_bytes(data)
        assert loaded.to_bytes() == data
        return self.keep(loaded, list(state[1]))

    @rule(target=states, state=consumes(states))
    def through_a_file(self, state):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "state.ckce"
            state[0].save(path)
            assert [file.name for file in Path(folder).iterdir()] == ["state.ckce"]
            return self.keep(ckce.CKCEAccumulator.load(path), list(state[1]))

    @rule(state=states)
    def reset(self, state):
        state[0].reset()
        state[1].clear()

    @rule(state=states)
    def compute(self, state):
        acc, parts = state
        if not any(len(y) for y, _, _ in parts):
            with pytest.raises(ValueError, match="no rows"):
                acc.compute()
            return
        y, q, w = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        value = acc.compute()
        agree(value, self.of_all(y, q, sample_weight=w), 1.0)
        again = ckce.CKCEAccumulator(self.m, **self.options, debias=False)
        again.update(y, q, sample_weight=w)
        agree(value, again.compute(), 1e-2)

    @invariant()
    def has_its_rows(self):
        for acc, parts in self.living:
            assert acc.n_samples == sum(len(y) for y, _, _ in parts)

    def teardown(self):
        for state in self.living:
            self.compute(state)


class LandmarkMachine(AccumulatorMachine):
    """The same on landmarks."""

    options: ClassVar = {"bandwidth": 0.6, "method": ckce.Landmarks(LANDMARKS)}
    of_all = staticmethod(partial(reference.ckce_landmarks, landmarks=LANDMARKS, bandwidth=0.6))


class CellMachine(AccumulatorMachine):
    """The same on the cells of two classes."""

    m = 2
    rows: ClassVar = sample(3000, 2)
    options: ClassVar = {"bandwidth": 0.01}
    of_all = staticmethod(partial(ckce.ckce, bandwidth=0.01, method="exact"))


for machine in (AccumulatorMachine, LandmarkMachine, CellMachine):
    machine.TestCase.settings = settings(max_examples=30, stateful_step_count=25)
test_accumulator_against_a_model = AccumulatorMachine.TestCase
test_landmarks_against_a_model = LandmarkMachine.TestCase
test_cells_against_a_model = CellMachine.TestCase
