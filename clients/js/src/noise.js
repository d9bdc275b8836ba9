/** Noise of a published law on a grid (the mechanism "gaussian"): its delta by enumeration, and draws. */

import { hasExactly } from "./canonical.js";
import { compare, decimal, decimalText, ratio, roundedUp } from "./exact.js";
import { coin, number } from "./randomness.js";
import { require, unit, UNITS, whole } from "./units.js";

const MOST_STEPS = 32;
const MOST_REACH = 2 ** 13;
const MOST_EPSILON = ratio(64n);
const BITS = 192n;

/** `{ outputs, epsilon, delta, draw }`: epsilon is the point at which delta is computed. */
export function shiftedNoise(description) {
  require(hasExactly(description, ["steps", "noise", "epsilon"]) && Array.isArray(description.noise));
  const { noise } = description;
  const steps = whole(description.steps, 1, MOST_STEPS);
  require((steps & (steps - 1)) === 0);
  require(noise.length >= 2 && noise.length <= MOST_REACH + 1);
  noise.forEach(unit);
  require(noise[0] + 2 * noise.slice(1).reduce((total, units) => total + units, 0) === UNITS);
  const epsilon = decimal(description.epsilon);
  require(epsilon && epsilon.n > 0n && compare(epsilon, MOST_EPSILON) <= 0);
  require(decimal(decimalText(epsilon))); // a ledger must be able to hold the charge: at most 60 decimals
  const units = [...noise.slice(1).reverse(), ...noise];
  const draw = (position, source) => {
    const scaled = position * steps;
    const step = Math.floor(scaled / UNITS) + (coin(source, scaled % UNITS) ? 1 : 0);
    const word = number(source, 4);
    let [end, column] = [units[0], 0];
    while (end <= word) end += units[(column += 1)];
    return step + column;
  };
  const outputs = steps + units.length;
  return { outputs, epsilon: { ...epsilon, text: decimalText(epsilon) }, delta: shiftDelta(units, steps, epsilon), draw };
}

/** The greatest sum of max(0, P(r | j) - e**epsilon * P(r | j')) over two steps, rounded up at the thirtieth digit. */
function shiftDelta(units, steps, epsilon) {
  const growth = growthOf(epsilon);
  const own = units.map((value) => BigInt(value) << BITS);
  const grown = units.map((value) => BigInt(value) * growth);
  let worst = 0n;
  for (let distance = 1; distance <= steps; distance += 1) {
    let total = 0n;
    for (let place = 0; place < own.length; place += 1) {
      const left = place < distance ? own[place] : own[place] - grown[place - distance];
      if (left > 0n) total += left;
    }
    if (total > worst) worst = total;
  }
  return roundedUp(worst, BigInt(UNITS) << BITS);
}

/** e**epsilon in units of 2**-192, rounded down. */
function growthOf({ n, d }) {
  let [term, total, count] = [1n << BITS, 0n, 0n];
  while (term) {
    [total, count] = [total + term, count + 1n];
    term = (term * n) / (d * count);
  }
  return total;
}
