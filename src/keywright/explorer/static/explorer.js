// Keyboard shortcuts and ticking clocks. Every page works without this script.
"use strict";

const SECOND = 1000;
const UNITS = [[31557600, "year"], [86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];

function inWords(seconds) {
  if (seconds < 1) return "less than a second";
  const [length, unit] = UNITS.find(([length]) => seconds >= length);
  const count = Math.floor(seconds / length);
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

function countdown(seconds) {
  if (seconds >= 7200) return inWords(seconds);
  const whole = Math.ceil(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
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
    element.textContent = left > 0 ? (element.dataset.lead || "") + countdown(left) : "gone";
  }
  for (const element of document.querySelectorAll("[data-since]")) {
    const age = Number(element.dataset.since) + elapsed(element);
    element.textContent = age < 2 ? "just now" : `${inWords(age)} ago`;
  }
}

function moveFocus(step) {
  const list = document.activeElement.closest("[data-keys]") || document.querySelector("[data-keys]");
  if (!list) return false;
  const rows = [...list.querySelectorAll("a.row")];
  const here = rows.indexOf(document.activeElement);
  const next = here < 0 ? rows[0] : rows[here + step];
  if (!next) return false;
  next.focus();
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input, textarea, select");
  if (event.key === "Escape" && typing) typing.blur();
  if (typing) return;
  const search = document.getElementById("q");
  if (event.key === "/" && search) {
    search.focus();
    search.select();
    event.preventDefault();
  }
  const inList = document.activeElement.matches("a.row");
  const step = { j: 1, k: -1, ArrowDown: inList ? 1 : 0, ArrowUp: inList ? -1 : 0 }[event.key];
  if (step && moveFocus(step)) event.preventDefault();
});

document.addEventListener("DOMContentLoaded", () => {
  tick();
  setInterval(tick, SECOND);
});
// Keep expanded and scrolled elements as they are when polling replaces a part of the page.
const KEPT = "details[id], .scroll[id]";
let kept = [];

document.addEventListener("htmx:beforeSwap", (event) => {
  kept = [...event.detail.target.querySelectorAll(KEPT)].map(({ id, open, scrollLeft }) => ({ id, open, scrollLeft }));
});
document.addEventListener("htmx:afterSwap", () => {
  for (const { id, open, scrollLeft } of kept) {
    const element = document.getElementById(id);
    if (element) Object.assign(element, open === undefined ? { scrollLeft } : { open });
  }
  kept = [];
  tick();
});
