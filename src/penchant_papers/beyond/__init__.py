"""Ours: theory beyond the sources, and phase diagrams that no paper has."""

from penchant.lab import Paper

# the scope of experiments whose runs no source prints: ours, and of watch
OWN_RUNS = {
    "tiny": "our own runs; fewer and shorter than at the largest size",
    "quick": "our own runs; fewer problems than at the largest size",
    "printed": "our own runs, at their largest size",
}
paper = Paper(
    "beyond",
    package=__name__,
    title="Beyond the sources",
    statements={
        "beyond-apriori": "apriori",
        "beyond-attention": "nets.attention",
        "beyond-balanced-linear": "balanced_linear",
        "beyond-central-flow": "central_flow",
        "beyond-certified": "certified",
        "beyond-clock": "clock",
        "beyond-design": "inverse_design",
        "beyond-predict-run": "predicted_runs",
        "beyond-greedy-rank": "greedy_rank",
        "beyond-convolution": "convolution",
        "beyond-imbalance": "imbalance",
        "beyond-infinite-width": "infinite_width",
        "beyond-kernel-error": "kernel_error",
        "beyond-saddles": "saddles",
        "beyond-growth": "growth",
        "beyond-sam": "norms.sam",
        "beyond-geometries": "norms.geometries",
        "beyond-own-norm": "nets.own_norm",
        "beyond-population": "population.regression",
        "beyond-population-margin": "population.margin",
        "beyond-population-matrix": "population.matrix",
        "beyond-population-choice": "population.choice",
        "beyond-momentum": "momentum",
        "beyond-clock-depth": "clock_depth",
        "beyond-margins": "margins",
        "beyond-muon": "muon",
        "beyond-lion": "norms.lion",
        "beyond-adam-batch": "adam_batch",
        "beyond-sgd-grokking": "sgd_grokking",
    },
)
