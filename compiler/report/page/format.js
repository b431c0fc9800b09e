// Numbers as people read them. Bytes: 1 kB = 1000 bytes, as pipec prints them.

function digits(number, significant = 3) {
  if (number === 0) return '0';
  const decimals = Math.max(0, significant - 1 - Math.floor(Math.log10(Math.abs(number)) + 1e-12));
  return number.toFixed(Math.min(decimals, 12));
}

function scaled(number, units, significant) {
  let unit = 0;
  while (Math.abs(number) >= 999.5 && unit < units.length - 1) {
    number /= 1000;
    ++unit;
  }
  return `${digits(number, significant)}\u00a0${units[unit]}`;
}

const formatBytes = bytes => bytes < 999.5 ? `${Math.round(bytes)}\u00a0B` : scaled(bytes / 1000, ['kB', 'MB', 'GB', 'TB', 'PB']);
const formatCount = count => count < 999.5 ? `${Math.round(count)}` : scaled(count / 1000, ['k', 'M', 'G', 'T', 'P']).replace('\u00a0', '');
const formatFlop = flop => scaled(flop, ['FLOP', 'kFLOP', 'MFLOP', 'GFLOP', 'TFLOP', 'PFLOP']);
const formatPercent = ratio => `${(ratio * 100).toFixed(1)}\u00a0%`;

// Nanoseconds.
const TIME_UNITS = ['ns', 'µs', 'ms', 's'];
const formatTime = (ns, significant = 4) => ns < 0.5 ? '0\u00a0s' : scaled(ns, TIME_UNITS, significant);

const plural = (count, one) => `${count} ${one}${count === 1 ? '' : 's'}`;
