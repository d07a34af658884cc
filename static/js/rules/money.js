/** Amounts: decimal strings outside, BigInt micro-units inside, never a float. */

export const MICROS_PER_UNIT = 1_000_000n;
const AMOUNT = /^(-?)(\d+)(?:\.(\d{1,6}))?$/;
const NO_BREAK_SPACE = "\u00a0";

/**
 * Micro-units of a decimal string such as "0.400000".
 *
 * @throws RangeError for anything else: a float, an exponent, more than six places
 */
export function toMicros(text) {
  const match = typeof text === "string" ? AMOUNT.exec(text) : null;
  if (!match) throw new RangeError(`not an amount: ${String(text)}`);
  const micros = BigInt(match[2]) * MICROS_PER_UNIT + BigInt((match[3] ?? "").padEnd(6, "0"));
  return match[1] ? -micros : micros;
}

/** The API's form of an amount, always six places. */
export function toAmount(micros) {
  const sign = micros < 0n ? "-" : "";
  const size = micros < 0n ? -micros : micros;
  return `${sign}${size / MICROS_PER_UNIT}.${String(size % MICROS_PER_UNIT).padStart(6, "0")}`;
}

/** For people: at least two and at most six decimals, trailing zeros cut, thousands grouped. */
export function formatAmount(micros) {
  const [whole, fraction] = toAmount(micros).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return `${grouped}.${fraction.replace(/0{1,4}$/, "")}`;
}

/** `0.40 USDC`, with a space that does not break. */
export function formatMoney(micros, currency) {
  return `${formatAmount(micros)}${NO_BREAK_SPACE}${currency}`;
}

/**
 * The price of chosen settings in a model's price list, in micro-units, or null when it is not sold.
 *
 * A row whose field is null holds for every value of that field.
 */
export function priceOf(model, { seconds, resolution, audio }) {
  const fits = (row, name, value) => row[name] === null || row[name] === undefined || row[name] === value;
  const row = (model.prices ?? []).find(
    (price) =>
      fits(price, "seconds", seconds) && fits(price, "resolution", resolution) && fits(price, "audio", audio),
  );
  return row ? toMicros(row.price) : null;
}

/** The lowest price of a model in micro-units, or null when it has none. */
export function lowestPrice(model) {
  const all = (model.prices ?? []).map((row) => toMicros(row.price));
  return all.length === 0 ? null : all.reduce((least, price) => (price < least ? price : least));
}
