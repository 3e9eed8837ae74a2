// Quantities with units as scenarios write them, and numbers for people.
"use strict";

(function (PS) {
  const QUANTITY = /^\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z][a-zA-Z/]*)\s*$/;
  const RATES = { "bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12 };
  const TIMES = { ns: 1e-6, us: 1e-3, ms: 1, s: 1e3, min: 6e4, h: 3.6e6 };

  /** Splits a text such as "10Mbit/s" into its number and its unit; null if it is none. */
  function split(text) {
    const found = typeof text === "string" && QUANTITY.exec(text);
    return found ? { number: Number(found[1]), unit: found[2] } : null;
  }

  const scaled = (units) => (text) => {
    const parts = split(text);
    return parts && parts.unit in units ? parts.number * units[parts.unit] : null;
  };

  /** Rounds to three significant digits and leaves out zeros at the end; a dash for what is missing. */
  const short = (number) => (number === null || Number.isNaN(number) ? "–" : String(Number(Number(number).toPrecision(3))));

  /** Writes a number with its unit for people; a dash alone for what is missing. */
  const told = (number, unit) => (short(number) === "–" ? "–" : `${short(number)} ${unit}`);

  /** Writes bits per second as scenarios do. */
  function rateText(bps) {
    const [unit, factor] = bps >= 999.5e6 ? ["Gbit/s", 1e9] : bps >= 999.5e3 ? ["Mbit/s", 1e6] : ["kbit/s", 1e3];
    return short(bps / factor) + unit;
  }

  /** Writes milliseconds as scenarios do; they know no fractions of a nanosecond, so short times are in microseconds. */
  const delayText = (ms) => (ms < 1 ? `${Math.round(ms * 1000)}us` : `${short(ms)}ms`);

  /** Writes a value of JSON as a literal of TOML; null becomes an empty text. */
  function literal(value) {
    if (value === null || value === undefined) return "";
    if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
    if (typeof value === "object") {
      return `{ ${Object.entries(value).map(([key, item]) => `${key} = ${literal(item)}`).join(", ")} }`;
    }
    return JSON.stringify(value);
  }

  /** Reads what a person typed into a field as a literal of TOML: numbers and true or false are bare, the rest quoted. */
  function typed(text) {
    const bare = text.trim();
    if (/^(true|false|[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?)$/.test(bare) || /^[[{"]/.test(bare)) return bare;
    return JSON.stringify(bare);
  }

  /** Puts a space between number and unit for people. */
  const spaced = (text) => String(text).replace(QUANTITY, "$1 $2");

  PS.units = { split, rate: scaled(RATES), delayMs: scaled(TIMES), short, told, rateText, delayText, literal, typed, spaced };
})((globalThis.PS = globalThis.PS || {}));
