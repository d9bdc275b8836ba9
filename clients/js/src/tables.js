/**
 * The published tables, in whole units of 2**-32: checks, the loss of one report, and draws.
 *
 * A table is `{ kind, size, epsilon, form, draw(answer, source) }`. The answer of "categories" is a place from 0; of
 * "numbers" a position from 0 to 2**32 between the bounds; of "questions" the hex of a row of bits; of "words" the hex of
 * the text's bits.
 */

import { hasExactly } from "./canonical.js";
import { add, compare, decimal, greater, lossOfRatio, ratio, times } from "./exact.js";
import { irreducible, parity, product } from "./fields.js";
import { coin, even, number } from "./randomness.js";
import { shiftedNoise } from "./noise.js";
import { moveOn, require, unit, UNITS, whole } from "./units.js";
import { prefixes } from "./words.js";

const WHOLE = 1n << 32n;
const MOST_CATEGORIES = 2 ** 20;
const MOST_HASH_BITS = 20;
const MOST_STEPS = 2 ** 16;
const MOST_ROWS = 33;
const MOST_QUESTIONS = 2 ** 12;

/** The table of a description. Any other document is refused. A stated epsilon is never read. */
export function rebuild(description) {
  const make = description !== null && typeof description === "object" && MADE[description.mechanism];
  require(typeof description?.mechanism === "string" && Object.hasOwn(MADE, description.mechanism) && make);
  return make(description);
}

const share = (units) => ratio(BigInt(units), WHOLE);
const rest = (value) => ratio(value.d - value.n, value.d);
const over = (left, right) => ratio(left.n * right.d, left.d * right.n);
const codes = (count) => ({ kind: "codes", count });
const bits = (width, ones = null) => ({ kind: "bits", width, ones });

/** A table over categories: a report supports its own category with p, and another given one with q. */
function categories(k, [own, other], loss, form, draw, more = {}) {
  require(compare(own, other) > 0);
  return { kind: "categories", size: k, epsilon: lossOfRatio(loss), form, draw, ...more };
}

function kary({ mechanism, ...description }) {
  require(hasExactly(description, ["k", "coins"]) && hasExactly(description.coins, ["keep"]));
  const k = whole(description.k, 2, mechanism === "rr" ? 2 : MOST_CATEGORIES);
  const keep = unit(description.coins.keep);
  const own = share(keep);
  const support = [own, spread(own, k)];
  const draw = (value, source) => moveOn(value, coin(source, keep), k, source);
  return categories(k, support, over(own, support[1]), codes(k), draw, { staged: "kary", support, again: draw });
}

/** The rest of a probability, shared equally by the others. */
function spread(own, k) {
  return times(rest(own), ratio(1n, BigInt(k - 1)));
}

function unary(description) {
  require(hasExactly(description, ["mechanism", "k", "coins"]) && hasExactly(description.coins, ["one", "zero"]));
  const k = whole(description.k, 2, MOST_CATEGORIES);
  const [one, zero] = [unit(description.coins.one), unit(description.coins.zero)];
  const support = [share(one), share(zero)];
  const draw = (value, source) => row(k, (place) => coin(source, place === value ? one : zero));
  const again = (kept, source) => row(k, (place) => coin(source, bitOf(kept, place) ? one : zero));
  return categories(k, support, oddsRatio(support), bits(k), draw, { staged: "unary", support, again });
}

/** Two answers differ in two bits, and their two ratios multiply. */
function oddsRatio([own, other]) {
  return over(times(own, rest(other)), times(other, rest(own)));
}

/** The table of one report after a permanent table and an instantaneous one of the same kind. */
export function staged(permanent, fresh) {
  require(permanent.staged && permanent.staged === fresh.staged && permanent.size === fresh.size);
  const [own, other] = permanent.support;
  const [one, zero] = fresh.support;
  const through = (first) => add(times(first, one), times(rest(first), zero));
  const support = [through(own), through(other)];
  if (permanent.staged === "unary") return categories(permanent.size, support, oddsRatio(support), permanent.form, null);
  const truth = add(times(own, one), times(rest(own), spread(one, permanent.size)));
  const twice = [truth, spread(truth, permanent.size)];
  return categories(permanent.size, twice, over(twice[0], twice[1]), permanent.form, null);
}

function subset(description) {
  require(hasExactly(description, ["mechanism", "k", "size", "coins"]) && hasExactly(description.coins, ["include"]));
  const k = whole(description.k, 2, MOST_CATEGORIES);
  const size = whole(description.size, 1, k - 1);
  const include = unit(description.coins.include);
  const own = share(include);
  const filled = add(times(own, ratio(BigInt(size - 1))), times(rest(own), ratio(BigInt(size))));
  const loss = ratio(BigInt(include) * BigInt(k - size), (WHOLE - BigInt(include)) * BigInt(size));
  const draw = (value, source) => {
    const included = coin(source, include);
    const places = [...evenSubset(k - 1, size, included, source), false];
    places[k - 1] = places[value % (k - 1)];
    places[value] = included;
    return row(k, (place) => places[place]);
  };
  return categories(k, [own, times(filled, ratio(1n, BigInt(k - 1)))], loss, bits(k, size), draw);
}

/** A uniform set of `chosen` places, or of one fewer: those of the least words; drawn again if words tie. */
function evenSubset(places, chosen, fewer, source) {
  for (;;) {
    const bytes = source.take(4 * places);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const words = Float64Array.from({ length: places }, (_, place) => view.getUint32(4 * place, true));
    const order = words.slice().sort();
    const last = order[chosen - 1];
    const tied = (chosen > 1 && order[chosen - 2] === last) || (chosen < places && order[chosen] === last);
    if (!tied) return Array.from(words, (word) => word < last || (word === last && !fewer));
  }
}

function hashing(description) {
  require(hasExactly(description, ["mechanism", "k", "hash_bits", "polynomial", "coins"]));
  require(hasExactly(description.coins, ["keep"]));
  const k = whole(description.k, 2, MOST_CATEGORIES);
  const hashBits = whole(description.hash_bits, 1, MOST_HASH_BITS);
  const seedBits = Math.max(32 - Math.clz32(k - 1), hashBits);
  const { polynomial } = description;
  require(irreducible(polynomial, seedBits));
  const [buckets, seeds] = [2 ** hashBits, 2 ** seedBits];
  const keep = unit(description.coins.keep);
  const loss = ratio(BigInt(keep) * BigInt(buckets - 1), WHOLE - BigInt(keep));
  const draw = (value, source) => {
    const kept = coin(source, keep);
    const seed = number(source, 4) % seeds;
    const hash = product(seed, value, polynomial) & (buckets - 1);
    return seed * buckets + moveOn(hash, kept, buckets, source);
  };
  return categories(k, [share(keep), ratio(1n, BigInt(buckets))], loss, codes(seeds * buckets), draw);
}

function hadamard(description) {
  require(hasExactly(description, ["mechanism", "k", "coins"]) && hasExactly(description.coins, ["keep"]));
  const k = whole(description.k, 2, MOST_CATEGORIES);
  const keep = unit(description.coins.keep);
  const columns = 2 ** (32 - Math.clz32(k));
  const draw = (value, source) => {
    const plus = coin(source, keep);
    const column = number(source, 4) % columns;
    const line = value + 1;
    return parity(column & line) === (plus ? 0 : 1) ? column : column ^ (line & -line);
  };
  return categories(k, [share(keep), ratio(1n, 2n)], ratio(BigInt(keep), WHOLE - BigInt(keep)), codes(columns), draw);
}

/** A table for numbers: `draw` takes a position from 0 to 2**32. */
function means({ mechanism, lower, upper, ...description }) {
  const [low, high] = [decimal(lower), decimal(upper)];
  require(low && high);
  const bounds = { lower: Number(lower), upper: Number(upper) };
  require(bounds.upper - bounds.lower > 0 && bounds.upper - bounds.lower < Infinity);
  const { outputs, epsilon, delta, draw } = MEANS[mechanism](description);
  return { kind: "numbers", low, high, ...bounds, epsilon, delta, form: codes(outputs), draw };
}

/** Round up or down to a step at random. */
function roundToSteps(position, steps, source) {
  const scaled = position * steps;
  return Math.floor(scaled / UNITS) + (coin(source, scaled % UNITS) ? 1 : 0);
}

function ends(value) {
  const keep = unit(value);
  require(2 * keep > UNITS);
  const draw = (position, source) => {
    const end = roundToSteps(position, 1, source);
    return coin(source, keep) ? end : 1 - end;
  };
  return { outputs: 2, epsilon: lossOfRatio(ratio(BigInt(keep), WHOLE - BigInt(keep))), draw };
}

function window_({ steps, width, coins: { inside } }) {
  whole(steps, 1, MOST_STEPS);
  whole(width, 1, steps);
  unit(inside);
  require((steps & (steps - 1)) === 0);
  const loss = ratio(BigInt(inside) * BigInt(steps), (WHOLE - BigInt(inside)) * BigInt(width));
  require(loss.n > loss.d);
  const draw = (position, source) => {
    const step = roundToSteps(position, steps, source);
    const isInside = coin(source, inside);
    const within = even(source, width);
    const beyond = even(source, steps) + width;
    return (step + (isInside ? within : beyond)) % (steps + width);
  };
  return { outputs: steps + width, epsilon: lossOfRatio(loss), draw };
}

function hybrid(description) {
  require(hasExactly(description, ["steps", "width", "coins"]));
  require(hasExactly(description.coins, ["piecewise", "inside", "keep"]));
  const windowed = whole(description.coins.piecewise, 0, UNITS);
  const [window, two] = [window_(description), ends(description.coins.keep)];
  const draw = (position, source) => {
    const first = coin(source, windowed);
    const inWindow = window.draw(position, source);
    const atEnds = two.draw(position, source) + window.outputs;
    return first ? inWindow : atEnds;
  };
  return { outputs: window.outputs + 2, epsilon: greater(window.epsilon, two.epsilon), draw };
}

function fullTable(description) {
  require(hasExactly(description, ["table"]) && Array.isArray(description.table));
  const { table } = description;
  const size = table.length;
  require(size >= 2 && size <= MOST_ROWS && ((size - 1) & (size - 2)) === 0);
  for (const line of table) {
    require(Array.isArray(line) && line.length === size);
    line.forEach(unit);
    require(line.reduce((total, units) => total + units, 0) === UNITS);
  }
  require(tellsApart(table));
  let loss = ratio(1n);
  for (let column = 0; column < size; column += 1) {
    const entries = table.map((line) => line[column]);
    loss = greater(loss, ratio(BigInt(Math.max(...entries)), BigInt(Math.min(...entries))));
  }
  const draw = (position, source) => {
    const line = table[roundToSteps(position, size - 1, source)];
    const word = number(source, 4);
    let [end, column] = [line[0], 0];
    while (end <= word) end += line[(column += 1)];
    return column;
  };
  return { outputs: size, epsilon: lossOfRatio(loss), draw };
}

/** Whether the determinant is not zero. Elimination without fractions. */
function tellsApart(table) {
  const rows = table.map((line) => line.map(BigInt));
  let before = 1n;
  for (let column = 0; column < rows.length - 1; column += 1) {
    const pivot = rows.findIndex((line, index) => index >= column && line[column] !== 0n);
    if (pivot < 0) return false;
    [rows[column], rows[pivot]] = [rows[pivot], rows[column]];
    const lead = rows[column];
    for (let index = column + 1; index < rows.length; index += 1) {
      const line = rows[index];
      for (let place = rows.length - 1; place >= column; place -= 1) {
        line[place] = (line[place] * lead[column] - line[column] * lead[place]) / before;
      }
    }
    before = lead[column];
  }
  return rows.at(-1).at(-1) !== 0n;
}

function questions(description) {
  require(hasExactly(description, ["mechanism", "method", "count", "coins"]) && hasExactly(description.coins, ["keep"]));
  const { method } = description;
  require(method === "split" || method === "sample");
  const count = whole(description.count, 1, MOST_QUESTIONS);
  const keep = unit(description.coins.keep);
  require(2 * keep > UNITS);
  const power = method === "split" ? BigInt(count) : 1n;
  const { n, d } = ratio(BigInt(keep), WHOLE - BigInt(keep));
  const loss = { n: n ** power, d: d ** power }; // reduced, because n / d is: reducing it again takes seconds
  const split = (answers, source) => row(count, (place) => bitOf(answers, place) === coin(source, keep));
  const sample = (answers, source) => {
    const asked = even(source, count);
    return 2 * asked + (bitOf(answers, asked) === coin(source, keep) ? 1 : 0);
  };
  const whole_ = method === "split" ? { form: bits(count), draw: split } : { form: codes(2 * count), draw: sample };
  return { kind: "questions", size: count, epsilon: lossOfRatio(loss), ...whole_ };
}

/** A row of bits in hex: bit i in byte i // 8 at place i % 8. */
export function row(width, isSet) {
  const bytes = new Uint8Array(Math.ceil(width / 8));
  for (let place = 0; place < width; place += 1) if (isSet(place)) bytes[place >> 3] |= 1 << (place & 7);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function bitOf(hex, place) {
  const byte = Number.parseInt(hex.slice(2 * (place >> 3), 2 * (place >> 3) + 2), 16);
  return ((byte >> (place & 7)) & 1) === 1;
}

const MEANS = {
  duchi: (description) => {
    require(hasExactly(description, ["coins"]) && hasExactly(description.coins, ["keep"]));
    return ends(description.coins.keep);
  },
  piecewise: (description) => {
    require(hasExactly(description, ["steps", "width", "coins"]) && hasExactly(description.coins, ["inside"]));
    return window_(description);
  },
  hybrid,
  laplace: fullTable,
  gaussian: shiftedNoise,
};

const MADE = {
  rr: kary,
  krr: kary,
  oue: unary,
  sue: unary,
  subset,
  olh: hashing,
  hadamard,
  duchi: means,
  piecewise: means,
  hybrid: means,
  laplace: means,
  gaussian: means,
  questions,
  pem: prefixes,
};
