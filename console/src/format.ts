// Numbers, sizes and times for people, in the notation of the browser's language.

const KIB = 1024;
const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat(undefined, {
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
});
const twoDigits = new Intl.NumberFormat(undefined, {
  minimumFractionDigits: 2,
  maximumFractionDigits: 2,
});
const shortest = new Intl.NumberFormat(undefined, { maximumFractionDigits: 3, useGrouping: false });
const percents = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 0 });
const timeOfDay = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const dateAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: 'base' });

export function count(value: number): string {
  return whole.format(value);
}

export function bytes(value: number): string {
  let unit = 0;
  let scaled = value;
  while (scaled >= KIB && unit + 1 < BYTE_UNITS.length) {
    scaled /= KIB;
    unit += 1;
  }
  const shown = unit > 0 && scaled < 100 ? oneDigit.format(scaled) : whole.format(scaled);
  return `${shown} ${BYTE_UNITS[unit]}`;
}

export function bitRate(value: number): string {
  if (value >= 1e9) return `${twoDigits.format(value / 1e9)} Gb/s`;
  if (value >= 1e6) return `${oneDigit.format(value / 1e6)} Mb/s`;
  return `${whole.format(value / 1e3)} kb/s`;
}

/** As `bitRate`, with the digits that the value has, as people type it: `5 Mb/s`, `5.55 Mb/s`. */
export function shortBitRate(value: number): string {
  if (value >= 1e9) return `${shortest.format(value / 1e9)} Gb/s`;
  if (value >= 1e6) return `${shortest.format(value / 1e6)} Mb/s`;
  return value >= 1e3 ? `${shortest.format(value / 1e3)} kb/s` : `${shortest.format(value)} b/s`;
}

/** As `bytes`, with the digits that the value has: `4 GiB`, `1.25 GiB`. */
export function shortBytes(value: number): string {
  const unit = Math.max(0, BYTE_UNITS.filter((_, power) => value >= KIB ** power).length - 1);
  return `${shortest.format(value / KIB ** unit)} ${BYTE_UNITS[unit]}`;
}

const smallPercents = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 2 });
const signedPercents = new Intl.NumberFormat(undefined, {
  style: 'percent',
  maximumFractionDigits: 1,
  signDisplay: 'exceptZero',
});

/** A part that may be small: `0.03%`; a difference with its sign: `+1.5%`. */
export function smallPercent(part: number, isDifference = false): string {
  return (isDifference ? signedPercents : smallPercents).format(part);
}

export function percent(part: number): string {
  return percents.format(part);
}

/** A number with the digits that it has, at most three behind the point: `0.8`. */
export function decimal(value: number): string {
  return shortest.format(value);
}

/** A span of seconds with fractions: `0.42 s`. */
export function seconds(value: number): string {
  return `${value < 10 ? twoDigits.format(value) : oneDigit.format(value)} s`;
}

/** A short time: `0.42 ms`, `42.0 ms`, `1.20 s`. */
export function response(value: number): string {
  const ms = value * 1e3;
  if (ms >= 1000) return seconds(value);
  return `${ms < 10 ? twoDigits.format(ms) : oneDigit.format(ms)} ms`;
}

/** A span of time in its two largest units: `41 s`, `3 min 20 s`, `2 h 5 min`, `4 d 3 h`. */
export function span(value: number): string {
  const total = Math.max(0, Math.round(value));
  const steps: [string, number][] = [
    ['d', 86_400],
    ['h', 3_600],
    ['min', 60],
    ['s', 1],
  ];
  const first = steps.findIndex(([, length]) => total >= length);
  if (first < 0) return '0 s';
  let rest = total;
  const parts = steps.slice(first, first + 2).map(([unit, length]) => {
    const number = Math.floor(rest / length);
    rest -= number * length;
    return number > 0 ? `${number} ${unit}` : '';
  });
  return parts.filter(Boolean).join(' ');
}

/** A position in a title: `1:02:03`, `2:03`. */
export function position(value: number): string {
  const total = Math.max(0, Math.round(value));
  const two = (number: number) => String(number).padStart(2, '0');
  const [hours, minutes, rest] = [Math.floor(total / 3600), Math.floor(total / 60) % 60, total % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** The time of day at a Unix time. */
export function clockTime(unixSeconds: number): string {
  return timeOfDay.format(unixSeconds * 1000);
}

export function dateTime(unixSeconds: number): string {
  return dateAndTime.format(unixSeconds * 1000);
}

/** Order of texts for people: `film 2` before `film 10`. */
export function compareTexts(a: string, b: string): number {
  return collator.compare(a, b);
}
