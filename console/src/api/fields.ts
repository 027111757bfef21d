// Reading JSON of which nothing is known: a server of another version may leave fields out, and
// a broken one may send anything. A field of the wrong type counts as missing.

import { Failure } from './failure';

export class Fields {
  private constructor(private readonly fields: Readonly<Record<string, unknown>>) {}

  /** The fields of a JSON object; fails for any other value. */
  static of(value: unknown): Fields {
    if (isObject(value)) return new Fields(value);
    throw new Failure('unreadable', 'the response is not a JSON object');
  }

  number(name: string, otherwise = 0): number {
    return this.numberOrNull(name) ?? otherwise;
  }

  numberOrNull(name: string): number | null {
    const value = this.fields[name];
    return typeof value === 'number' && Number.isFinite(value) ? value : null;
  }

  text(name: string, otherwise = ''): string {
    return this.textOrNull(name) ?? otherwise;
  }

  textOrNull(name: string): string | null {
    const value = this.fields[name];
    return typeof value === 'string' ? value : null;
  }

  flag(name: string): boolean {
    return this.fields[name] === true;
  }

  /** Whether a flag is there and not set. */
  isFalse(name: string): boolean {
    return this.fields[name] === false;
  }

  /** An object; one without fields where there is none. */
  object(name: string): Fields {
    return this.objectOrNull(name) ?? new Fields({});
  }

  objectOrNull(name: string): Fields | null {
    const value = this.fields[name];
    return isObject(value) ? new Fields(value) : null;
  }

  /** The objects of a list, decoded. What is no object is left out. */
  list<T>(name: string, decode: (item: Fields) => T): T[] {
    return this.items(name).filter(isObject).map((item) => decode(new Fields(item)));
  }

  /** As `list`, but a response without the list is unreadable. */
  neededList<T>(name: string, decode: (item: Fields) => T): T[] {
    if (this.hasList(name)) return this.list(name, decode);
    throw new Failure('unreadable', `the response has no list "${name}"`);
  }

  /** Whether the field is there and not `null`. */
  hasValue(name: string): boolean {
    return this.fields[name] !== undefined && this.fields[name] !== null;
  }

  hasList(name: string): boolean {
    return Array.isArray(this.fields[name]);
  }

  /** All fields that are numbers, with their names. */
  numbersByName(): [string, number][] {
    return Object.keys(this.fields).flatMap((name): [string, number][] => {
      const value = this.numberOrNull(name);
      return value === null ? [] : [[name, value]];
    });
  }

  numbers(name: string): number[] {
    return this.items(name).filter((item): item is number => Number.isFinite(item));
  }

  texts(name: string): string[] {
    return this.items(name).filter((item): item is string => typeof item === 'string');
  }

  private items(name: string): readonly unknown[] {
    const value = this.fields[name];
    return Array.isArray(value) ? value : [];
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
