// One passage of a result: where it stands, why it was found, and the links that led to it.

import { write } from "./address.js";
import { h, icon, s } from "./dom.js";
import { number, t } from "./strings.js";
import { excerpt, nameOf, short, units, within } from "./text.js";

export const PATHS = ["dense", "bm25", "tfidf", "attributes"];

/** A text with stretches of it marked. */
export function marked(text, spans) {
  const parts = [];
  let end = 0;
  for (const [start, past] of spans) {
    parts.push(text.slice(end, start), h("mark", {}, text.slice(start, past)));
    end = past;
  }
  parts.push(text.slice(end));
  return parts;
}

/** A path in pieces that may wrap after each slash. */
export const crumbs = (path) => path.split(/(?<=\/)/).flatMap((piece) => [piece, h("wbr")]);

/** The address of a document, opened at a passage. */
export const addressOf = (state, { path, record, char_start: from, char_end: to }) =>
  write({ ...state, view: "document", path, record, from: from ?? null, to: to ?? null });

export function place(hit) {
  for (const name of ["page", "slide", "sheet", "line", "cell", "entry"]) {
    const value = hit.location?.[name];
    if (value !== null && value !== undefined) return t(name, { n: value });
  }
  return null;
}

function bar(name, source) {
  const value = Math.max(0, Math.min(1, source?.normalized ?? 0));
  const title = source
    ? `${t(`${name}Help`)}: ${t("raw", { raw: number(source.raw, 2), weight: number(source.weight, 2) })}, ${source.rank ? t("rankOn", { n: source.rank }) : t("notCandidate")}`
    : t(`${name}Help`);
  return h("div", { class: `path ${name}`, title },
    h("dt", {}, t(name)),
    h("dd", {}, meter(value), h("span", { class: "figure" }, source ? number(source.normalized, 2) : "–")));
}

const meter = (value) =>
  s("svg", { class: "meter", viewBox: "0 0 100 6", preserveAspectRatio: "none", width: "100%", height: 6, "aria-hidden": "true" },
    s("rect", { class: "rail", x: 0, y: 0, width: 100, height: 6 }), s("rect", { class: "level", x: 0, y: 0, width: value * 100, height: 6 }));

export const scores = (hit) =>
  h("div", { class: "scores" },
    h("p", { class: "fused" }, h("span", {}, t("score")), h("strong", {}, number(hit.score, 2))),
    h("dl", { "aria-label": t("scores") }, PATHS.map((name) => bar(name, hit.sources[name]))));

/** The links that led to a hit, drawn as one thread from the passage where it begins. */
export function trail(hit, state) {
  if (!hit.trail.length) return null;
  const knot = (path, last) =>
    h("li", { class: last ? "knot last" : "knot" },
      last ? h("span", { class: "end" }, short(nameOf(path), 40, true))
        : h("a", { href: write({ ...state, view: "document", path, record: null, from: null, to: null }), title: path }, short(nameOf(path), 40, true)));
  const thread = (step) =>
    h("li", { class: `thread ${step.direction}` }, step.direction === "in" ? icon("left") : null,
      h("span", { class: "anchor", title: step.href }, short(step.anchor || step.href, 48)), step.direction === "in" ? null : icon("right"));
  return h("div", { class: "trail" }, h("p", { class: "hidden" }, t("trail")),
    h("ol", { "aria-label": t("trail") }, hit.trail.flatMap((step) => [knot(step.path, false), thread(step)]), knot(hit.path, true)));
}

/** A hit as an item of the list. Where it has the words of the question, the service says. */
export function hit(one, state) {
  const spans = units(one.text, one.highlights?.text);
  // The heading stands above already.
  const skipped = one.heading && one.text.startsWith(`${one.heading}\n`) ? one.heading.length : 0;
  const from = skipped + one.text.slice(skipped).search(/\S|$/);
  const body = one.text.slice(from).trimEnd();
  const inside = within(spans, from, from + body.length);
  const [start, end] = excerpt(body, inside);
  const heading = one.heading && one.heading !== one.title ? one.heading : null;
  const where = [place(one), one.record !== null ? t("record", { n: one.record }) : null].filter(Boolean);
  const title = one.title ? marked(one.title, units(one.title, one.highlights?.title)) : nameOf(one.path);
  return h("li", { class: "hit", value: one.rank }, h("article", {},
    h("div", { class: "found" },
      h("h3", {}, h("a", { class: "title", href: addressOf(state, one) }, title), heading ? h("span", { class: "heading" }, marked(heading, units(heading, one.highlights?.heading))) : null),
      h("p", { class: "where" }, h("span", { class: "file" }, crumbs(one.path)), where.map((text) => h("span", { class: "spot" }, text))),
      h("p", { class: "excerpt" }, start > 0 ? "… " : null, tight(marked(body.slice(start, end), within(inside, start, end))), end < body.length ? " …" : null),
      trail(one, state)),
    scores(one)));
}

/** Pieces of a text without its empty lines, which take room that another sentence could have. */
const tight = (pieces) => pieces.map((piece) => (typeof piece === "string" ? piece.replace(/\s*\n\s*/g, "\n") : piece));
