/** Exact numbers: ratios of BigInts, and logarithms rounded up. No loss is computed with floats. */

const SIGNIFICANT_DIGITS = 30;
const BITS = 256n;
const DECIMAL = /^(-?)([0-9]{1,40})(?:\.([0-9]{1,60}))?(?:e([+-]?[0-9]{1,3}))?$/;

export function ratio(numerator, denominator = 1n) {
  let [a, b] = [numerator < 0n ? -numerator : numerator, denominator];
  while (b) [a, b] = [b, a % b];
  return { n: numerator / a, d: denominator / a };
}

export function compare(left, right) {
  const difference = left.n * right.d - right.n * left.d;
  return difference > 0n ? 1 : difference < 0n ? -1 : 0;
}

export const add = (left, right) => ratio(left.n * right.d + right.n * left.d, left.d * right.d);
export const negative = (value) => ({ n: -value.n, d: value.d });
export const times = (left, right) => ratio(left.n * right.n, left.d * right.d);
export const greater = (left, right) => (compare(left, right) >= 0 ? left : right);

/** The number of a decimal text, or null if it is no number. */
export function decimal(text) {
  const found = typeof text === "string" ? DECIMAL.exec(text) : null;
  if (!found) return null;
  const [, sign, whole, digits = "", exponent = "0"] = found;
  const places = BigInt(exponent) - BigInt(digits.length);
  const number = BigInt(`${sign}${whole}${digits}`);
  return places >= 0n ? ratio(number * 10n ** places) : ratio(number, 10n ** -places);
}

/** All digits of a number whose denominator divides a power of ten. */
export function decimalText({ n, d }) {
  let places = 0;
  for (let power = 1n; (n * power) % d; power *= 10n) places += 1;
  const digits = ((n < 0n ? -n : n) * 10n ** BigInt(places)) / d;
  const padded = digits.toString().padStart(places + 1, "0");
  const text = places ? `${padded.slice(0, -places)}.${padded.slice(-places)}` : padded;
  return n < 0n ? `-${text}` : text;
}

/**
 * The loss of a table whose greatest ratio between two answers is `value`: ln of it (or of its inverse), rounded up at
 * the thirtieth digit. `{ n, d, text }`.
 */
export function lossOfRatio(value) {
  const above = value.n >= value.d ? value : { n: value.d, d: value.n };
  const [, high] = logEnclosure(above, BITS);
  return roundedUp(high > 0n ? high : 0n, 1n << BITS);
}

/** [low, high] with low <= 2**bits * ln(value) <= high, for a reduced value > 0. */
export function logEnclosure(value, bits) {
  const power = bitLength(value.n) - bitLength(value.d);
  const [n, d] = power >= 0 ? [value.n, value.d << BigInt(power)] : [value.n << BigInt(-power), value.d];
  const work = bits + BigInt(bitLength(BigInt(Math.abs(power)))) + 32n;
  let [low, high] = twiceArtanh(n - d, n + d, work);
  const [lowTwo, highTwo] = twiceArtanh(1n, 3n, work);
  const times = BigInt(power);
  [low, high] = power >= 0 ? [low + times * lowTwo, high + times * highTwo] : [low + times * highTwo, high + times * lowTwo];
  return [low >> (work - bits), -(-high >> (work - bits))];
}

function twiceArtanh(numerator, denominator, work) {
  const small = ((numerator < 0n ? -numerator : numerator) << work) / denominator;
  const square = (small * small) >> work;
  let [power, total, count] = [small, 0n, 0n];
  while (power) {
    total += power / (2n * count + 1n);
    power = (power * square) >> work;
    count += 1n;
  }
  const slack = 4n * count + 8n;
  const [low, high] = [2n * (total - slack), 2n * (total + slack)];
  return numerator >= 0n ? [low, high] : [-high, -low];
}

/** The least decimal of thirty digits that is not below n / d, as a ratio and as a text. */
export function roundedUp(n, d) {
  if (n === 0n) return { n: 0n, d: 1n, text: "0" };
  let places = SIGNIFICANT_DIGITS - (n.toString().length - d.toString().length); // exact, or one too many
  const scaled = (count) => (count >= 0 ? [n * 10n ** BigInt(count), d] : [n, d * 10n ** BigInt(-count)]);
  let [top, bottom] = scaled(places);
  if (top / bottom >= 10n ** BigInt(SIGNIFICANT_DIGITS)) [top, bottom] = scaled((places -= 1));
  let digits = (top + bottom - 1n) / bottom;
  while (digits % 10n === 0n) [digits, places] = [digits / 10n, places - 1];
  const value = places >= 0 ? ratio(digits, 10n ** BigInt(places)) : ratio(digits * 10n ** BigInt(-places));
  const text = digits.toString();
  const adjusted = text.length - 1 - places;
  if (adjusted >= -6 && adjusted <= 20) return { ...value, text: decimalText(value) };
  const mantissa = text.length > 1 ? `${text[0]}.${text.slice(1)}` : text;
  return { ...value, text: `${mantissa}e${adjusted < 0 ? "-" : "+"}${Math.abs(adjusted)}` };
}

function bitLength(value) {
  return value === 0n ? 0 : value.toString(2).length;
}
