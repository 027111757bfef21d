// Quantities that are typed, with their units, as on the command line: `5 Mbps`, `4 GiB`.

const RATE_UNITS: Readonly<Record<string, number>> = {
  bps: 1,
  kbps: 1e3,
  mbps: 1e6,
  gbps: 1e9,
};
const SIZE_UNITS: Readonly<Record<string, number>> = {
  b: 1,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
};
/** The most that JavaScript counts exactly. */
const MOST = Number.MAX_SAFE_INTEGER;

/** A whole number of at least one; separators between thousands may be in it. */
export function parseCount(typed: string): number | undefined {
  const digits = typed.trim().replace(/[\s.,'’](?=\d{3}(?!\d))/g, '');
  return /^\d+$/.test(digits) ? within(Number(digits)) : undefined;
}

/** An exponent of Zipf's law, from 0 to 10. */
export function parseZipf(typed: string): number | undefined {
  const [value, unit] = split(typed);
  return unit === '' && value >= 0 && value <= 10 ? value : undefined;
}

/** Bits per second. `5 Mbps`, `5 Mb/s`, `5 Mbit/s` and `5M` are the same; `MB/s` are bytes. */
export function parseBitRate(typed: string): number | undefined {
  const [value, unit] = split(typed);
  const isBytes = /B(ps|\/s)$/.test(unit);
  const name = unit.toLowerCase().replace(/^([kmg])$/, '$1bps').replace(/b(it)?\/s$/, 'bps');
  return scaled(value, RATE_UNITS[name], isBytes ? 8 : 1);
}

/** Bytes. `4 GiB` and `4G` are the same, `4 GB` are fewer. */
export function parseBytes(typed: string): number | undefined {
  const [value, unit] = split(typed);
  return scaled(value, SIZE_UNITS[unit.toLowerCase().replace(/^([kmgt])$/, '$1ib')], 1);
}

function split(typed: string): [number, string] {
  const [, number = '', unit = ''] = /^\s*(\d+(?:[.,]\d+)?)\s*(\D*?)\s*$/.exec(typed) ?? [];
  return [number === '' ? NaN : Number(number.replace(',', '.')), unit];
}

function scaled(value: number, unit: number | undefined, factor: number): number | undefined {
  return unit === undefined ? undefined : within(Math.round(value * unit * factor));
}

function within(value: number): number | undefined {
  return value >= 1 && value <= MOST ? value : undefined;
}
