/** Relations between keys: both directions and their indexes, written together or not at all. */

import { type Call, Procedure, type Session } from "./calls.js";
import { type Check, commit, equals, hasMember, optimistic, owned } from "./commit.js";
import { TakenError, UsageError } from "./errors.js";
import type { Key, KeyType } from "./keys.js";
import type { SetKey } from "./sets.js";
import type { ValueKey } from "./strings.js";

type One<T> = KeyType<any, ValueKey<T>>; // eslint-disable-line -- the variable may have any name
type Many<T> = KeyType<any, SetKey<T>>; // eslint-disable-line -- the variable may have any name
type Writes = Call<unknown>[];

/** More writes in the same step. */
export interface Also {
  readonly also?: readonly Call<unknown>[];
}

function is<T>(key: ValueKey<T>, value: T | null): Check {
  return equals(key, value === null ? null : key.encoded(value));
}

function same<T>(key: ValueKey<T>, one: T | null, other: T | null): boolean {
  return one === null || other === null ? one === other : key.encoded(one).equals(key.encoded(other));
}

async function tried(session: Session, name: string, checks: Check[], writes: readonly Call<unknown>[]): Promise<true | null> {
  return (await commit(name, checks, writes).run(session)).applied ? true : null;
}

/** Write `also` alone: the relation is already as wanted. */
async function only(session: Session, name: string, also: readonly Call<unknown>[]): Promise<false> {
  if (also.length > 0) await commit(name, [], also).run(session);
  return false;
}

/** Each A has at most one B (`forward`); each B knows all of its A (`inverse`). */
export class ManyToOne<A, B> {
  constructor(
    readonly name: string,
    private readonly forward: One<B>,
    private readonly inverse: Many<A>,
    private readonly index: Many<A> | null,
  ) {}

  of(a: A): Call<B | null> {
    return this.forward.only(a).get();
  }

  inverseOf(b: B): Call<A[]> {
    return this.inverse.only(b).members();
  }

  /** Relate a to b. Return false if they were related. Throw TakenError if a has another partner. */
  assign(a: A, b: B, { also = [] }: Also = {}): Call<boolean> {
    return this.move(a, b, also, false);
  }

  /** Relate a to b and end the former relation of a. Return false if they were related. */
  replace(a: A, b: B, { also = [] }: Also = {}): Call<boolean> {
    return this.move(a, b, also, true);
  }

  /** End the relation of a. Return whether it had one. */
  clear(a: A, { also = [] }: Also = {}): Call<boolean> {
    const forward = this.forward.only(a);
    return optimistic<boolean>(`clear ${this.name}`, async (session) => {
      const old = await forward.get().run(session);
      if (old === null) return only(session, this.name, also);
      return tried(session, this.name, [is(forward, old)], [...this.parted(a, old), ...also]);
    });
  }

  /** End every relation of b. Return how many there were. */
  clearInverse(b: B): Call<number> {
    return new Procedure(async (session) => {
      const members = await this.inverse.only(b).members().run(session);
      const ended = await Promise.all(members.map((a) => this.clearFrom(a, b).run(session)));
      return ended.filter(Boolean).length;
    });
  }

  /** Return the writes that relate a free a to b, for a commit that checks that a is free. */
  joined(a: A, b: B): Writes {
    const writes: Writes = [this.forward.only(a).set(b), this.inverse.only(b).add(a)];
    return this.index === null ? writes : [...writes, this.index.only(undefined).add(a)];
  }

  /** Return the writes that end the relation of a and b. */
  parted(a: A, b: B): Writes {
    const writes: Writes = [this.forward.only(a).delete(), this.inverse.only(b).remove(a)];
    return this.index === null ? writes : [...writes, this.index.only(undefined).remove(a)];
  }

  private clearFrom(a: A, b: B): Call<boolean> {
    const forward = this.forward.only(a);
    return optimistic<boolean>(`clear ${this.name}`, async (session) => {
      const old = await forward.get().run(session);
      if (!same(forward, old, b)) {
        // The set names an a that belongs elsewhere: leave the forward side, mend the set.
        await tried(session, this.name, [is(forward, old)], [this.inverse.only(b).remove(a)]);
        return false;
      }
      return tried(session, this.name, [is(forward, old)], this.parted(a, b));
    });
  }

  private move(a: A, b: B, also: readonly Call<unknown>[], mayMove: boolean): Call<boolean> {
    const forward = this.forward.only(a);
    return optimistic<boolean>(`assign ${this.name}`, async (session) => {
      const old = await forward.get().run(session);
      if (same(forward, old, b)) return only(session, this.name, also);
      if (old !== null && !mayMove) throw new TakenError(this.name, a, old);
      const leave = old === null ? [] : [this.inverse.only(old).remove(a)];
      return tried(session, this.name, [is(forward, old)], [...leave, ...this.joined(a, b), ...also]);
    });
  }
}

/** Each A has at most one B and each B at most one A. */
export class OneToOne<A, B> {
  constructor(
    readonly name: string,
    private readonly forward: One<B>,
    private readonly inverse: One<A>,
    private readonly index: Many<A> | null,
    private readonly inverseIndex: Many<B> | null,
  ) {}

  of(a: A): Call<B | null> {
    return this.forward.only(a).get();
  }

  inverseOf(b: B): Call<A | null> {
    return this.inverse.only(b).get();
  }

  /** Relate a and b. Return false if they were related. Throw TakenError if either has another partner. */
  assign(a: A, b: B, { also = [] }: Also = {}): Call<boolean> {
    return this.join(a, b, also, false);
  }

  /** Relate a and b and end the relations of both, in one step. Return false if they were related. */
  replace(a: A, b: B, { also = [] }: Also = {}): Call<boolean> {
    return this.join(a, b, also, true);
  }

  /** End the relation of a. Return whether it had one. */
  clear(a: A, { also = [] }: Also = {}): Call<boolean> {
    const forward = this.forward.only(a);
    return optimistic<boolean>(`clear ${this.name}`, async (session) => {
      const b = await forward.get().run(session);
      if (b === null) return only(session, this.name, also);
      const inverse = this.inverse.only(b);
      const back = await inverse.get().run(session);
      // A half link: the partner belongs to another, whose relation must stay.
      const writes = same(inverse, back, a) ? this.parted(a, b) : [forward.delete(), ...removed(this.index, a)];
      return tried(session, this.name, [is(forward, b), is(inverse, back)], [...writes, ...also]);
    });
  }

  /** End the relation of b. Return whether it had one. */
  clearInverse(b: B, { also = [] }: Also = {}): Call<boolean> {
    return this.reversed().clear(b, { also });
  }

  /** Return the same relation from the other side. */
  reversed(): OneToOne<B, A> {
    return new OneToOne(this.name, this.inverse, this.forward, this.inverseIndex, this.index);
  }

  /** Return the writes that relate a and b, for a commit that checks that both sides are free. */
  joined(a: A, b: B): Writes {
    return [this.forward.only(a).set(b), this.inverse.only(b).set(a), ...added(this.index, a), ...added(this.inverseIndex, b)];
  }

  /** Return the writes that end the relation of a and b, for a commit that checks both sides. */
  parted(a: A, b: B): Writes {
    return [this.forward.only(a).delete(), this.inverse.only(b).delete(), ...removed(this.index, a), ...removed(this.inverseIndex, b)];
  }

  private join(a: A, b: B, also: readonly Call<unknown>[], mayMove: boolean): Call<boolean> {
    const forward = this.forward.only(a);
    const inverse = this.inverse.only(b);
    return optimistic<boolean>(`assign ${this.name}`, async (session) => {
      const [oldB, oldA] = await Promise.all([forward.get().run(session), inverse.get().run(session)]);
      const [bIsSame, aIsSame] = [same(forward, oldB, b), same(inverse, oldA, a)];
      if (bIsSame && aIsSame) return only(session, this.name, also);
      if (!mayMove && oldB !== null && !bIsSame) throw new TakenError(this.name, a, oldB);
      if (!mayMove && oldA !== null && !aIsSame) throw new TakenError(this.name, b, oldA);
      const checks = [is(forward, oldB), is(inverse, oldA)];
      const writes: Writes = [];
      if (oldB !== null && !bIsSame) await this.reversed().leave(session, oldB, a, checks, writes);
      if (oldA !== null && !aIsSame) await this.leave(session, oldA, b, checks, writes);
      return tried(session, this.name, checks, [...writes, ...this.joined(a, b), ...also]);
    });
  }

  /** Collect the writes that end the side of a former partner of b, unless it has another by now. */
  private async leave(session: Session, former: A, b: B, checks: Check[], writes: Writes): Promise<void> {
    const forward = this.forward.only(former);
    const held = await forward.get().run(session);
    checks.push(is(forward, held));
    if (same(forward, held, b)) writes.push(forward.delete(), ...removed(this.index, former));
  }
}

/** Each A has a set of B and each B the set of its A. */
export class ManyToMany<A, B> {
  constructor(
    readonly name: string,
    private readonly forward: Many<B>,
    private readonly inverse: Many<A>,
  ) {}

  of(a: A): Call<B[]> {
    return this.forward.only(a).members();
  }

  inverseOf(b: B): Call<A[]> {
    return this.inverse.only(b).members();
  }

  /** Relate a and b. Return false if they were related. */
  assign(a: A, b: B, { also = [] }: Also = {}): Call<boolean> {
    return this.put(a, b, also, true);
  }

  /** End the relation of a and b. Return whether there was one. */
  clear(a: A, b: B, { also = [] }: Also = {}): Call<boolean> {
    return this.put(a, b, also, false);
  }

  /** Make these the only partners of a, in one step. Return false if they were. */
  replace(a: A, partners: Iterable<B>, { also = [] }: Also = {}): Call<boolean> {
    const forward = this.forward.only(a);
    const wanted = keyed(forward, partners);
    return optimistic<boolean>(`replace ${this.name}`, async (session) => {
      const old = keyed(forward, await forward.members().run(session));
      const gone = [...old].filter(([text]) => !wanted.has(text)).map(([, b]) => b);
      const fresh = [...wanted].filter(([text]) => !old.has(text)).map(([, b]) => b);
      if (gone.length + fresh.length === 0) return only(session, this.name, also);
      const checks = [
        ...gone.map((b) => hasMember(forward, forward.encoded(b))),
        ...fresh.map((b) => hasMember(forward, forward.encoded(b), false)),
      ];
      const writes: Writes = [...gone.map((b) => this.inverse.only(b).remove(a)), ...fresh.map((b) => this.inverse.only(b).add(a))];
      if (gone.length > 0) writes.push(forward.remove(...gone));
      if (fresh.length > 0) writes.push(forward.add(...fresh));
      return tried(session, this.name, checks, [...writes, ...also]);
    });
  }

  /** End every relation of a. Return whether there were any. */
  clearAll(a: A, also: Also = {}): Call<boolean> {
    return this.replace(a, [], also);
  }

  private put(a: A, b: B, also: readonly Call<unknown>[], present: boolean): Call<boolean> {
    const forward = this.forward.only(a);
    const inverse = this.inverse.only(b);
    return optimistic<boolean>(`assign ${this.name}`, async (session) => {
      const there = await forward.has(b).run(session);
      if (there === present) return only(session, this.name, also);
      const change: Writes = present ? [forward.add(b), inverse.add(a)] : [forward.remove(b), inverse.remove(a)];
      return tried(session, this.name, [hasMember(forward, forward.encoded(b), there)], [...change, ...also]);
    });
  }
}

/** A set that names every existing key of one kind, kept with it. */
export class Index<A, K extends Key> {
  constructor(
    readonly name: string,
    private readonly keys: KeyType<any, K>, // eslint-disable-line -- the variable may have any name
    private readonly by: Many<A>,
  ) {}

  /** Write a key and list it in the index, in one step. `write` is a call on the key that does not read first. */
  put(a: A, write: (key: K) => Call<unknown>, { also = [] }: Also = {}): Call<void> {
    const key = this.keys.only(a);
    const call = write(key);
    if (!call.pieces()?.commands.some((command) => command.key === key)) {
      throw new UsageError(`${this.name}: the write is not one of the key it was given.`);
    }
    return commit(this.name, [owned(key)], [call, ...added(this.by, a), ...also]).map(() => undefined);
  }

  /** Delete a key and drop it from the index, in one step. Return whether the index listed it. */
  delete(a: A, { also = [] }: Also = {}): Call<boolean> {
    const key = this.keys.only(a);
    return new Procedure(async (session) => {
      const there = await this.by.only(undefined).has(a).run(session);
      await commit(this.name, [owned(key)], [key.delete(), ...removed(this.by, a), ...also]).run(session);
      return there;
    });
  }

  members(): Call<A[]> {
    return this.by.only(undefined).members();
  }
}

function keyed<B>(key: SetKey<B>, values: Iterable<B>): Map<string, B> {
  return new Map([...values].map((value) => [key.encoded(value).toString("latin1"), value]));
}

function added<T>(index: Many<T> | null, member: T): Writes {
  return index === null ? [] : [index.only(undefined).add(member)];
}

function removed<T>(index: Many<T> | null, member: T): Writes {
  return index === null ? [] : [index.only(undefined).remove(member)];
}

/** Relate many to one; `index` names all that have one. */
export function manyToOne<A, B>(name: string, forward: One<B>, inverse: Many<A>, index: Many<A> | null = null): ManyToOne<A, B> {
  return new ManyToOne(name, forward, inverse, index);
}

/** Relate one to one; index sets move with the sides. */
export function oneToOne<A, B>(name: string, forward: One<B>, inverse: One<A>, index: Many<A> | null = null, inverseIndex: Many<B> | null = null): OneToOne<A, B> {
  return new OneToOne(name, forward, inverse, index, inverseIndex);
}

/** Relate many to many. */
export function manyToMany<A, B>(name: string, forward: Many<B>, inverse: Many<A>): ManyToMany<A, B> {
  return new ManyToMany(name, forward, inverse);
}

/** Keep a set that names every existing key of one kind. */
export function index<A, K extends Key>(name: string, keys: KeyType<any, K>, by: Many<A>): Index<A, K> { // eslint-disable-line -- any variable
  return new Index(name, keys, by);
}
