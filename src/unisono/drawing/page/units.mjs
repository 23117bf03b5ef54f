// Numbers with units, as people write them.

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
  const units = [
    ["s", 1],
    ["ms", 1e-3],
    ["µs", 1e-6],
    ["ns", 1e-9],
  ];
  const [name, unit] = units.find(([, least]) => seconds >= least) ?? units[units.length - 1];
  return `${few(seconds / unit)} ${name}`;
}

/** What a beta means as a bandwidth: 10 GB/s. */
export function bandwidthText(secondsPerByte) {
  const rate = 1 / secondsPerByte;
  return rate >= 1e9 ? `${few(rate / 1e9)} GB/s` : `${few(rate / 1e6)} MB/s`;
}

/** Three digits that count, no zeros at the end. */
export function few(value) {
  return `${Number(value.toPrecision(3))}`;
}
