/**
 * Random changes, as another process makes them at the same time.
 *
 * Arguments of the program: the client, the URL, the seed, and how many operations. It starts at a line of standard
 * input, and prints how many operations changed something, found a partner taken, or lost every attempt.
 */

import { createInterface } from "node:readline";

import * as kw from "keywright";

import { connected } from "./client.js";

const TOGETHER = 4;

/** Return a whole number below a limit. */
export type Draw = (limit: number) => number;

export async function randomChanges(operation: (drawn: Draw) => kw.Call<unknown>): Promise<void> {
  const [, , library = "", url = "", seed = "1", count = "100"] = process.argv;
  let state = BigInt(seed);
  const drawn = (limit: number): number => {
    state = (state * 6364136223846793005n + 1442695040888963407n) % 2n ** 64n;
    return Number((state >> 33n) % BigInt(limit));
  };
  const client = await connected(library, url);
  const db = kw.database(client.adapter);
  const outcomes = { changed: 0, taken: 0, lost: 0 };
  const lines = createInterface({ input: process.stdin });
  console.log("ready");
  await new Promise((begin) => lines.once("line", begin));
  for (let done = 0; done < Number(count); done += TOGETHER) {
    const calls = Array.from({ length: TOGETHER }, () => operation(drawn));
    await Promise.all(
      calls.map(async (call) => {
        try {
          if (await db.run(call)) outcomes.changed += 1;
        } catch (error) {
          if (error instanceof kw.TakenError) outcomes.taken += 1;
          else if (error instanceof kw.ConflictError) outcomes.lost += 1;
          else throw error;
        }
      }),
    );
  }
  console.log(JSON.stringify(outcomes));
  lines.close();
  await client.close();
}
