// The texts of plots. Another language is another table of the same shape.

export const text = {
  legend: 'Series',
  showAll: 'Show all',
  hint: 'Drag to zoom. With the keyboard: arrows, + and −, Escape.',
  nothing: 'Nothing was measured.',
  described: (title: string, series: readonly string[]) =>
    series.length === 0 ? title : `${title}: ${series.join(', ')}`,
  /** A value with the name of its axis. */
  of: (name: string, value: string) => `${name}: ${value}`,
  range: (from: string, to: string) => `${from} to ${to}`,
  times: 'count',
};
