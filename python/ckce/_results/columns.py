"""The columns of every table of models, by importance; a new score gets its line here."""

from ckce._results.interval import percent
from ckce._results.table import Column


def model_columns(level: float) -> tuple[Column, ...]:
    """What is said of a model, with intervals of this level."""
    return (
        Column("debiased", ("ckce_debiased",), "ckce", strong=True),
        Column(f"{percent(level)} interval", ("ckce_low", "ckce_high"), "ckce"),
        Column("p-value", ("p_value",), form=".4f"),
        Column("miscalibration", ("miscalibration",), "brier"),
        Column("CKCE", ("ckce",), "ckce"),
        Column("floor", ("ckce_floor",), "ckce"),
        Column("accuracy", ("accuracy",), form=".4f"),
        Column("confidence", ("mean_confidence",), form=".4f"),
        Column("ECE (top label)", ("ece_top_label",), "ece"),
        Column("JKCE", ("jkce",), "jkce"),
        Column("Brier", ("brier",), "brier"),
        Column("log loss", ("log_loss",), "log loss"),
    )
