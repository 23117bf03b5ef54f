// Numbers with units, in the usual notation.

/** Bytes: 64 KiB, 1.5 MiB. */
export function bytesText(bytes) {
  const names = ["B", "KiB", "MiB", "GiB"];
  let at = 0;
  let value = bytes;
  while (value >= 1024 && at < names.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${few(value)} ${names[at]}`;
}

/** Seconds: 42 µs, 1.3 ms. */
export function secondsText(seconds) {
  return durationText(seconds * 1e9);
}

/** Nanoseconds: 42 µs, 1.3 ms; as unisono/tracing/narration.py writes them. */
export function durationText(ns) {
  const units = [
    ["s", 1e9],
    ["ms", 1e6],
    ["µs", 1e3],
  ];
  const [name, unit] = units.find(([, length]) => ns >= 0.9995 * length) ?? ["ns", 1]; // 999.6 µs becomes 1 ms
  return `${ns < 999.5 * unit ? few(ns / unit) : Math.round(ns / unit)} ${name}`;
}

/** The bandwidth that a beta stands for: 10 GB/s. */
export function bandwidthText(secondsPerByte) {
  const rate = 1 / secondsPerByte;
  return rate >= 1e9 ? `${few(rate / 1e9)} GB/s` : `${few(rate / 1e6)} MB/s`;
}

/** Three significant digits, without trailing zeros. */
export function few(value) {
  return `${Number(value.toPrecision(3))}`;
}

/** The exact number of bytes: 66,560 B. */
export function exactBytes(bytes) {
  return `${Math.round(bytes).toLocaleString("en-US")} B`;
}

/** Bytes of large models, in powers of ten: 112 GB. */
export function decimalBytes(bytes) {
  return inThousands(bytes, [" TB", " GB", " MB", " kB", " B"]);
}

/** A count: 7 billion becomes 7B. */
export function countText(count) {
  return inThousands(count, ["T", "B", "M", "K", ""]);
}

function inThousands(value, names) {
  const at = [1e12, 1e9, 1e6, 1e3].findIndex((least) => value >= least * 0.9995);
  const power = at < 0 ? 4 : at;
  return `${few(value / 1000 ** (4 - power))}${names[power]}`;
}
