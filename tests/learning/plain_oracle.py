"""An oracle without a curator, for experiments on many samples: exact averages of a sample, and Laplace noise."""

import itertools

import duckdb
import numpy as np


class Population:
    """Rows with probabilities and labels. A sample is a count for each row, so its size does not matter."""

    def __init__(self, columns, rows, weights, label, seed=0):
        self.columns, self.rows = columns, rows
        self.weights = np.array(weights, float) / sum(weights)
        self.labels = [bool(label(dict(zip(columns, row, strict=True)))) for row in rows]
        self.generator = np.random.default_rng(seed)
        self.known = {}

    def oracle(self, m, k, epsilon):
        return PlainOracle(self, self.generator.multinomial(m, self.weights), m, k / (epsilon * m))

    def error(self, hypothesis):
        """The exact probability that the hypothesis differs from the label."""
        wrong = [
            hypothesis.predict(dict(zip(self.columns, row, strict=True))) != label
            for row, label in zip(self.rows, self.labels, strict=True)
        ]
        return float(self.weights[wrong].sum())

    def evaluate(self, psi):
        """Where the rows satisfy an SQL condition."""
        if psi not in self.known:
            rows = [(*row, label) for row, label in zip(self.rows, self.labels, strict=True)]
            written = ", ".join(f"({place}, {', '.join(map(str, row))})" for place, row in enumerate(rows))
            names = ", ".join(["place", *self.columns, "y"])
            found = duckdb.sql(f"SELECT {psi} FROM (VALUES {written}) AS rows({names}) ORDER BY place").fetchall()
            self.known[psi] = np.array([bool(value) for (value,) in found])
        return self.known[psi]


class PlainOracle:
    def __init__(self, population, counts, m, scale):
        self.population, self.counts, self.m, self.scale, self.asked = population, counts, m, scale, 0

    def means(self, psis):
        self.asked += len(psis)
        exact = [self.counts[self.population.evaluate(psi)].sum() / self.m for psi in psis]
        return np.clip(exact + self.population.generator.laplace(0, self.scale, len(psis)), 0, 1).tolist()


def cube(dimension):
    return list(itertools.product((False, True), repeat=dimension))
