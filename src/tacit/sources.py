"""The sources that tacit checks, and the order in which everything about them is listed."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.records import Record


@dataclass(frozen=True, repr=False)
class Source(Record):
    """One document: the letter that its claims, figures and studies begin with, and who wrote it.

    `form` says what was read: only what is printed there is checked.
    """

    letter: str
    title: str
    authors: tuple[str, ...]
    year: int
    form: str

    @property
    def short(self) -> str:
        """For instance Woodworth et al. 2020."""
        return f"{self.authors[0].split()[-1]} et al. {self.year}"


SOURCES = (
    Source(
        "W",
        "Kernel and Rich Regimes in Overparametrized Models",
        (
            *("Blake Woodworth", "Suriya Gunasekar", "Jason D. Lee", "Edward Moroshko"),
            *("Pedro Savarese", "Itay Golan", "Daniel Soudry", "Nathan Srebro"),
        ),
        2020,
        "paper",
    ),
    Source(
        "M",
        "Implicit Bias in Deep Linear Classification: Initialization Scale vs Training Accuracy",
        (
            *("Edward Moroshko", "Suriya Gunasekar", "Blake Woodworth"),
            *("Jason D. Lee", "Nathan Srebro", "Daniel Soudry"),
        ),
        2020,
        "paper",
    ),
    Source(
        "L",
        "Dichotomy of Early and Late Phase Implicit Biases Can Provably Induce Grokking",
        ("Kaifeng Lyu", "Jikai Jin", "Zhiyuan Li", "Simon S. Du", "Jason D. Lee", "Wei Hu"),
        2023,
        "poster",
    ),
    Source(
        "N",
        "Grokking Beyond the Euclidean Norm of Model Parameters",
        ("Pascal Jr. Tikeng Notsawo", "Guillaume Dumas", "Guillaume Rabusseau"),
        2025,
        "blog post",
    ),
)
LETTERS = {source.letter: source for source in SOURCES}
OTHERS = {  # the headings of ids that do not begin with the letter of a source
    "beyond": "the sources",
    "watch": "of a training run",
}


def source_of(id: str) -> Source | None:
    """The source of a claim, figure or study, by the letters before the first dash of its id."""
    return LETTERS.get(id.split("-")[0].upper())
