/** How a line of a chart looks. */
export interface Look {
  readonly name: string;
  readonly colour: `--${string}`;
  readonly width?: number;
  /** Lengths of dashes and gaps. */
  readonly dash?: readonly number[];
  readonly isFilled?: boolean;
  readonly hasPoints?: boolean;
}

/** A line of a chart. */
export interface Line extends Look {
  /** A value for each place of the horizontal axis; `null`: none is known. */
  readonly y: readonly (number | null)[];
}
