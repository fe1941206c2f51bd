/** Change a relation of many to many and an index at random. */

import type * as kw from "keywright";

import { type Draw, randomChanges } from "./random_changes.js";
import { bookIndex, tagsOfRelation } from "./shelf.js";

const BOOKS = 5;
const TAGS = 4;

function operation(drawn: Draw): kw.Call<unknown> {
  const book = `b${drawn(BOOKS)}`;
  const tag = `t${drawn(TAGS)}`;
  switch (drawn(6)) {
    case 0:
      return tagsOfRelation.assign(book, tag);
    case 1:
      return tagsOfRelation.clear(book, tag);
    case 2:
      return tagsOfRelation.replace(book, [tag, `t${drawn(TAGS)}`]);
    case 3:
      return tagsOfRelation.clearAll(book);
    case 4:
      return bookIndex.put(book, (key) => key.set(`title ${drawn(9)}`)).map(() => true);
    default:
      return bookIndex.delete(book);
  }
}

await randomChanges(operation);
