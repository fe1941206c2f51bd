/** Print the error of a relation, and what a single key holds, on a server of a cluster. */

import * as kw from "keywright";

import { connected } from "./client.js";
import * as meetup from "./meetup.js";

const [, , library = "", url = ""] = process.argv;
const client = await connected(library, url);
const db = kw.database(client.adapter);
const refused = await db.run(meetup.channelOfSeriesRelation.assign("s", 1n)).then(() => "", (error: unknown) => (error as Error).message);
console.log(JSON.stringify({ refused }));
await client.close();
