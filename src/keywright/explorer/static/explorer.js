// Keyboard, copying, filters and ticking clocks. Every page works without this script.
"use strict";

const SECOND = 1000;

// As `left` in presentation.py: the two largest units, as in "1 h 55 min".
const UNITS = [[31557600, "y"], [86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

function inWords(seconds) {
  if (seconds < 1) return "less than 1 s";
  const first = UNITS.findIndex(([length]) => seconds >= length);
  const [length, unit] = UNITS[first];
  const count = Math.floor(seconds / length);
  const words = `${count.toLocaleString("en")} ${unit}`;
  if (first + 1 === UNITS.length) return words;
  const [smaller, smallerUnit] = UNITS[first + 1];
  const rest = Math.floor((seconds - count * length) / smaller);
  return rest ? `${words} ${rest} ${smallerUnit}` : words;
}

// Elements carry the time left, or the age, of when they were rendered; the page's clock updates them.
const met = new WeakMap();

function elapsed(element) {
  if (!met.has(element)) met.set(element, performance.now());
  return (performance.now() - met.get(element)) / SECOND;
}

function tick() {
  for (const element of document.querySelectorAll("[data-ttl]")) {
    const left = Number(element.dataset.ttl) / SECOND - elapsed(element);
    change(element, left > 0 ? (element.dataset.lead || "") + inWords(left) : "gone");
  }
  for (const element of document.querySelectorAll("[data-since]")) {
    const age = Number(element.dataset.since) + elapsed(element);
    change(element, age < 2 ? "just now" : `${inWords(age)} ago`);
  }
}

function change(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function moveFocus(step) {
  const rows = [...document.querySelectorAll("[data-keys] a.row")].filter((row) => row.offsetParent !== null);
  const here = rows.indexOf(document.activeElement);
  const next = here < 0 ? rows[0] : rows[here + step];
  if (!next) return false;
  next.focus();
  return true;
}

const GOES = { s: "/", m: "/map", d: "/schema", c: "/changes", o: "/operations", a: "/audit" };
let going = false;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input, textarea, select");
  if (event.key === "Escape" && typing) typing.blur();
  if (typing || document.querySelector("dialog[open]")) return;
  if (going && event.key in GOES) location.assign(GOES[event.key]);
  going = event.key === "g";
  const field = { "/": "q", f: "narrow" }[event.key];
  const focused = field && document.getElementById(field);
  if (focused) {
    focused.focus();
    focused.select();
    event.preventDefault();
  }
  if (event.key === "?") document.getElementById("help")?.showModal();
  const inList = document.activeElement.matches("a.row");
  const step = { j: 1, k: -1, ArrowDown: inList ? 1 : 0, ArrowUp: inList ? -1 : 0 }[event.key];
  if (step && moveFocus(step)) event.preventDefault();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-from]");
  if (!button) return;
  const { copy, copyFrom } = button.dataset;
  await navigator.clipboard.writeText(copy ?? (await (await fetch(copyFrom)).text()));
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = label; }, 2 * SECOND);
});

function narrowed(wanted) {
  for (const group of document.querySelectorAll(".side details")) {
    let shown = 0;
    for (const line of group.querySelectorAll("li")) {
      line.hidden = !line.textContent.toLowerCase().includes(wanted);
      shown += !line.hidden;
    }
    group.hidden = wanted !== "" && shown === 0;
    if (wanted) group.open = true;
  }
}

function enhance(root) {
  if (navigator.clipboard) for (const button of root.querySelectorAll("[data-copy], [data-copy-from]")) button.hidden = false;
  tick();
}

document.addEventListener("DOMContentLoaded", () => {
  const help = document.getElementById("help");
  const opener = document.getElementById("help-button");
  if (help && opener) {
    opener.hidden = false;
    opener.addEventListener("click", () => help.showModal());
  }
  const filter = document.getElementById("narrow");
  if (filter) {
    filter.hidden = false;
    filter.addEventListener("input", () => narrowed(filter.value.trim().toLowerCase()));
  }
  document.querySelector(".bar nav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
  const side = document.querySelector(".side");
  // On a phone the templates follow the page, which must not scroll down to them.
  if (side && getComputedStyle(side).position !== "static") {
    side.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }
  enhance(document);
  setInterval(tick, SECOND);
});

// Polling must not take away what a person selects, types or has focused.
function inUse(part) {
  const selection = document.getSelection();
  const selecting = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  return selecting || part.contains(document.activeElement) || part.querySelector(".treemap:hover") !== null;
}

document.addEventListener("htmx:beforeRequest", (event) => {
  const polling = event.detail.requestConfig?.triggeringEvent === undefined;
  if (polling && event.target.hasAttribute("data-polls") && inUse(event.target)) event.preventDefault();
});

// Keep expanded and scrolled elements as they are when polling replaces a part of the page.
const KEPT = "details[id], .scroll[id]";
let kept = [];

document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.target.hasAttribute("data-polls") && inUse(event.target)) {
    event.detail.shouldSwap = false;
    return;
  }
  kept = [...event.detail.target.querySelectorAll(KEPT)].map(({ id, open, scrollLeft }) => ({ id, open, scrollLeft }));
});
document.addEventListener("htmx:afterSwap", () => {
  for (const { id, open, scrollLeft } of kept) {
    const element = document.getElementById(id);
    if (element) Object.assign(element, open === undefined ? { scrollLeft } : { open });
  }
  kept = [];
  enhance(document);
});
