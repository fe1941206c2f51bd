/** What the compiler must reject: each line that ends with a code in a comment, and no other. */

import * as kw from "keywright";

import * as drc from "./drc.js";
import * as kinds from "./every_kind.js";
import * as meetup from "./meetup.js";
import * as openmod from "./openmod.js";
import * as streams from "./spectacles_streams.js";

export async function rejected(db: kw.Database): Promise<void> {
  drc.Message.key(); // E: TS2554
  drc.Message.key({ message: 112233 }); // E: TS2322
  drc.Message.key({ mesage: "112233" }); // E: TS2561
  drc.Message.key({ message: "1", guild: "2" }); // E: TS2353
  drc.Guilds.key({ guild: "2" }); // E: TS2554
  meetup.ChannelOfGuestRole.key({ role: "1" }); // E: TS2322
  meetup.TypeOfSeries.key({ series: "a" }).set("novel"); // E: TS2345
  drc.Guilds.key().add(1n); // E: TS2345
  drc.Message.key({ message: "1" }).set(new Date()); // E: TS2345
  drc.Message.key({ message: "1" }).add(1); // E: TS2339
  meetup.AccessToken.key().get(); // E: TS2339
  meetup.OrganizerLease.key().set("x"); // E: TS2339
  meetup.OrganizerLease.key().acquire("token"); // E: TS2554
  meetup.channelOfSeriesRelation.assign("series", "1"); // E: TS2345
  meetup.seriesOfEventRelation.assign("event", 1n); // E: TS2345
  openmod.PendingEvents.key().schedule("x", 5); // E: TS2345
  kinds.Ranks.key().add("a", new Date()); // E: TS2345
  kinds.Sizes.key({ sku: "a" }).set("m"); // E: TS2345
  kinds.Moods.key({ raw: "a" }); // E: TS2339
  streams.EventStream.key({ event: "E" }).add({ data: "text", only: "" }); // E: TS2322
  streams.EventStream.key({ event: "E" }).add({ only: "" }); // E: TS2345
  const text: string = await db.run(drc.Guilds.key().size()); // E: TS2322
  const name: number = drc.Message.parse("x")!.message; // E: TS2322
  db.run("GET"); // E: TS2345
  void [text, name];
}
