/** Change the relations of the Meetup model at random: one-to-one, and many-to-one with an index. */

import type * as kw from "keywright";

import * as meetup from "./meetup.js";
import { type Draw, randomChanges } from "./random_changes.js";

const IDS = 4;

function operation(drawn: Draw): kw.Call<unknown> {
  const series = `series${drawn(IDS)}`;
  const event = `event${drawn(2 * IDS)}`;
  const channel = BigInt(drawn(IDS) + 1);
  switch (drawn(8)) {
    case 0:
      return meetup.channelOfSeriesRelation.assign(series, channel);
    case 1:
      return meetup.channelOfSeriesRelation.replace(series, channel);
    case 2:
      return meetup.channelOfSeriesRelation.clear(series);
    case 3:
      return meetup.channelOfSeriesRelation.clearInverse(channel);
    case 4:
      return meetup.seriesOfEventRelation.assign(event, series);
    case 5:
      return meetup.seriesOfEventRelation.replace(event, series);
    case 6:
      return meetup.seriesOfEventRelation.clear(event);
    default:
      return meetup.seriesOfEventRelation.clearInverse(series);
  }
}

await randomChanges(operation);
