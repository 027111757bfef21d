// The order of titles' names: by their bytes in UTF-8, as the server sorts them.

/** Whether a name comes behind another one. */
export function isBehind(name: string, other: string): boolean {
  const length = Math.min(name.length, other.length);
  for (let index = 0; index < length; index++) {
    const [a, b] = [name.charCodeAt(index), other.charCodeAt(index)];
    if (a !== b) return inOrder(a) > inOrder(b);
  }
  return name.length > other.length;
}

/** Halves of characters beyond U+FFFF come behind all that are whole. */
function inOrder(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit;
}

/** A name behind which a name is next, but for those that nobody gives. */
export function justBefore(name: string): string | null {
  const characters = [...name];
  const last = characters.pop()?.codePointAt(0);
  if (last === undefined) return null;
  const before = characters.join('');
  if (last === 0) return before;
  const previous = last === 0xe000 ? 0xd7ff : last - 1;
  return `${before}${String.fromCodePoint(previous)}\u{10ffff}`;
}
