/** The field of 2**m elements, m up to 20: whole numbers, added by exclusive or, multiplied modulo a polynomial. */

export function product(left, right, polynomial) {
  const top = 1 << (31 - Math.clz32(polynomial));
  let total = 0;
  for (let shifted = left, rest = right; rest; rest >>>= 1) {
    if (rest & 1) total ^= shifted;
    shifted <<= 1;
    if (shifted & top) shifted ^= polynomial;
  }
  return total;
}

export function parity(value) {
  let odd = 0;
  for (let rest = value; rest; rest &= rest - 1) odd ^= 1;
  return odd;
}

/** Whether a polynomial is irreducible and of this degree. Ben-Or's test: no common factor with x**(2**i) - x for i up to half the degree. */
export function irreducible(polynomial, degree) {
  if (!Number.isSafeInteger(polynomial) || polynomial < 2 ** degree || polynomial >= 2 ** (degree + 1)) return false;
  if (degree === 1) return true;
  let power = 2;
  for (let index = 0; index < Math.floor(degree / 2); index += 1) {
    power = product(power, power, polynomial);
    let [left, right] = [polynomial, power ^ 2];
    while (right) [left, right] = [right, remainder(left, right)];
    if (left !== 1) return false;
  }
  return true;
}

function remainder(value, divisor) {
  const length = 32 - Math.clz32(divisor);
  let rest = value;
  while (rest && 32 - Math.clz32(rest) >= length) rest ^= divisor << (32 - Math.clz32(rest) - length);
  return rest;
}
