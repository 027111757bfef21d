// The stops of sliders whose ranges are wide: about as many for each factor of ten, or of two.

/** Numbers of two digits and more zeros from `least` to `most`, as many for each factor of ten. */
function decimalStops(least: number, most: number, perDecade: number): number[] {
  const steps = Math.round(Math.log10(most / least) * perDecade);
  const values = Array.from({ length: steps + 1 }, (_, step) =>
    Number((least * 10 ** (step / perDecade)).toPrecision(2)),
  );
  return [...new Set(values.map(Math.round))];
}

/** Four stops for each factor of two: 1, 1.25, 1.5, 1.75 times a power of two. */
function binaryStops(least: number, most: number): number[] {
  const stops = [];
  for (let power = least; power < most; power *= 2) {
    for (const part of [1, 1.25, 1.5, 1.75]) stops.push(power * part);
  }
  return [...stops, most];
}

const MIB = 2 ** 20;

export const viewerStops: readonly number[] = decimalStops(1, 100_000, 20);
export const rateStops: readonly number[] = decimalStops(100_000, 200_000_000, 20);
/** Each number of disks that one server may have, and those of a rack. */
export const diskStops: readonly number[] = [
  ...Array.from({ length: 31 }, (_, index) => index + 1),
  ...decimalStops(32, 1000, 20),
];
/** The last stop is no limit. */
export const memoryStops: readonly (number | null)[] = [
  ...binaryStops(64 * MIB, 1024 * 1024 * MIB),
  null,
];

export const titleStops: readonly number[] = decimalStops(1, 100_000, 20);
export const zipfStops: readonly number[] = Array.from({ length: 20 }, (_, index) => (index + 1) / 10);

/** The stop that is nearest to a value, by their ratio. No limit is the last one. */
export function nearestStop(stops: readonly (number | null)[], value: number | null): number {
  const distance = (stop: number | null) => {
    if (stop === null || value === null) return stop === value ? 0 : Infinity;
    return Math.abs(Math.log(stop / value));
  };
  let nearest = 0;
  stops.forEach((stop, index) => {
    if (distance(stop) < distance(stops[nearest] ?? null)) nearest = index;
  });
  return nearest;
}
