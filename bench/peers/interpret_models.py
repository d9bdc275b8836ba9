"""DP-EBM of interpret-core: the peer of Sfumato's boosted additive model.

Its noise is calibrated for add-remove: a bin's count moves by 1, and so does a bin's sum of gradients before it is
multiplied by the learning rate (source of 0.7.8). It uses the number of rows and the codes that occur without noise.
"""

from interpret.privacy import DPExplainableBoostingClassifier
from scores import Case, run


def make_boosted(case: Case) -> object:
    kinds = ["nominal" if place in case.codes else "continuous" for place in range(case.columns)]
    bounds = [(0.0, case.codes[place] - 1.0) if place in case.codes else (-1.0, 1.0) for place in range(case.columns)]
    return DPExplainableBoostingClassifier(
        feature_types=kinds,
        privacy_bounds=dict(enumerate(bounds)),
        epsilon=case.epsilon,
        delta=case.delta,
        random_state=case.seed,
        n_jobs=1,
    )


if __name__ == "__main__":
    run({"BoostedAdditiveClassifier": make_boosted})
