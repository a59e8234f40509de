// A document at the passage that was found, and the links around it.

import { read, write } from "./address.js";
import { of, request } from "./api.js";
import { announce, h, icon, note, outside, put, waiting } from "./dom.js";
import { picture, neighbours } from "./graph.js";
import { crumbs } from "./hits.js";
import { bytes, date, languageName, number, t } from "./strings.js";
import { nameOf, unitOf, units, within } from "./text.js";

const LENGTH = 24_000; // code points asked for at once
const BEFORE = 4_000; // of them before the passage
const LINKS = 100; // rows of a page of links

const QUIET = ["title", "permalink", "aliases"]; // metadata that is shown elsewhere, or says nothing to a reader

export class DocumentView {
  constructor(fail) {
    this.fail = fail;
    this.running = null;
  }

  leave() {
    this.running?.abort();
    this.observer?.disconnect();
  }

  async show(main, state) {
    this.leave();
    const running = (this.running = new AbortController());
    const { signal } = running;
    const root = h("div", { class: "document" }, waiting(6));
    root.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { event.preventDefault(); this.back(state); }
    });
    put(main, root);
    const base = of(state.collection);
    const { path, record } = state;
    const start = Math.max(0, (state.from ?? 0) - BEFORE);
    const linksOf = (direction, cursor = null) => request("GET", `${base}/links`, { params: { path, direction, limit: LINKS, cursor }, signal });
    try {
      const [part, out, into] = await Promise.all([
        request("GET", `${base}/part`, { params: { path, record, start, length: LENGTH, mark: state.q.trim() || null }, signal }),
        linksOf("out"),
        linksOf("in"),
      ]);
      if (signal.aborted) return;
      const sides = { out: side(out, () => linksOf("out", out.next_cursor), path, record, "out"), in: side(into, () => linksOf("in", into.next_cursor), path, record, "in") };
      put(root, this.head(part, state), state.view === "links" ? this.links(part, sides, state) : this.text(part, sides, state, signal));
      document.title = `${part.title || nameOf(path)} – clew`;
      this.land(root, state);
    } catch (problem) {
      if (signal.aborted) return;
      const inside = problem.status === 400 ? h("a", { class: "button", href: write({ ...state, view: "search", q: "", facets: read("").facets, where: [`path:"${path.replace(/["\\]/g, "\\$&")}"`] }) }, t("search")) : null;
      put(root, this.backLink(state), problem.status === 400 ? note(nameOf(path), problem.message, inside) : this.fail(problem, () => this.show(main, state)));
    }
  }

  back(state) {
    if (history.state?.inside && history.length > 1) history.back();
    else this.root.querySelector("a.back")?.click();
  }

  backLink(state) {
    const link = h("a", { class: "back", href: write({ ...state, view: "search" }) }, icon("back"), t("back"));
    this.root = { querySelector: () => link };
    return link;
  }

  head(part, state) {
    const tab = (view, name) => h("a", { href: write({ ...state, view }), "aria-current": state.view === view ? "page" : null }, t(name));
    const facts = [
      part.type, part.language && part.language !== "und" ? languageName(part.language) : null, bytes(part.size), part.modified ? date(part.modified) : null,
    ].filter(Boolean);
    const original = part.url && outside(part.url);
    return h("header", { class: "about" },
      this.backLink(state),
      h("h1", { tabindex: -1 }, part.title || nameOf(part.path)),
      h("p", { class: "where" }, h("span", { class: "file" }, crumbs(part.path)), part.record !== null ? h("span", { class: "spot" }, t("record", { n: part.record })) : null, facts.map((fact) => h("span", { class: "spot" }, fact)),
        part.state === "indexed" ? null : h("span", { class: "badge warn" }, t(part.state))),
      h("div", { class: "below" },
        h("nav", { class: "tabs small", "aria-label": part.title || nameOf(part.path) }, tab("document", "text"), tab("links", "picture")),
        original ? h("a", { class: "original", href: original, rel: "noopener noreferrer" }, icon("out"), t("open")) : null));
  }

  text(part, sides, state, signal) {
    const code = ["code", "csv", "jsonl"].includes(part.type);
    const page = h("article", { class: code ? "page code" : "page", lang: part.language && part.language !== "und" ? part.language : null });
    const more = (start, length, name, before) => {
      const button = h("button", { type: "button", class: "button more", onclick: async () => {
        button.disabled = true;
        try {
          const next = await request("GET", `${of(state.collection)}/part`, { params: { path: part.path, record: state.record, start, length, mark: state.q.trim() || null }, signal });
          const body = paragraphs(next, before ? next.char_start : start, before ? start + length : next.char_end, state, code);
          const follow = before ? next.char_start > 0 && more(Math.max(0, next.char_start - LENGTH), Math.min(LENGTH, next.char_start), name, true)
            : next.char_end < next.characters && more(next.char_end, LENGTH, name, false);
          button.replaceWith(...[before && follow, ...body, !before && follow].filter(Boolean));
        } catch (problem) {
          button.disabled = false;
          button.after(this.fail(problem, null));
        }
      } }, t(name));
      return button;
    };
    put(page,
      part.char_start > 0 ? more(Math.max(0, part.char_start - LENGTH), Math.min(LENGTH, part.char_start), "earlier", true) : null,
      part.text ? paragraphs(part, part.char_start, part.char_end, state, code) : note(t("noText"), [part.reason, part.message].filter(Boolean).join(": ") || null),
      part.char_end < part.characters ? more(part.char_end, LENGTH, "later", false) : null);
    const meta = Object.entries(part.meta).filter(([name]) => !QUIET.includes(name));
    return h("div", { class: "columns reading" }, page,
      h("aside", { class: "beside", "aria-label": t("links") },
        meta.length ? h("dl", { class: "meta" }, meta.slice(0, 12).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, Array.isArray(value) ? value.join(", ") : String(value))))) : null,
        lists(sides, state)));
  }

  links(part, sides, state) {
    const frame = h("div", { class: "frame" });
    const draw = () => put(frame, picture(part, sides, state, Math.max(280, frame.clientWidth)));
    this.observer = new ResizeObserver(() => { if (frame.clientWidth !== frame.drawn) { frame.drawn = frame.clientWidth; draw(); } });
    this.observer.observe(frame);
    return h("div", { class: "columns linking" },
      h("figure", { class: "map", "aria-label": t("neighbourhood", { name: part.title || nameOf(part.path) }) }, frame),
      h("aside", { class: "beside", "aria-label": t("links") }, lists(sides, state)));
  }

  land(root, state) {
    const cited = root.querySelector("#cited");
    if (cited) {
      cited.focus({ preventScroll: true });
      cited.scrollIntoView({ block: "center" });
      announce(t("cited"));
    } else {
      root.querySelector("h1").focus({ preventScroll: true });
      scrollTo(0, 0);
    }
  }
}

const side = (page, next, path, record, direction) => ({ direction, rows: page.links, next: page.next_cursor ? next : null, groups: neighbours(page.links, direction, path, record) });

/** The links of a document as lists: where to, and with which words. */
function lists(sides, state) {
  return ["out", "in"].map((direction) => {
    const { groups, next } = sides[direction];
    const count = `${number(groups.length)}${next ? "+" : ""}`;
    const list = h("ul", {}, groups.map((group) => entry(group, state)));
    const more = next ? h("button", { type: "button", class: "plain", onclick: async () => {
      more.remove();
      const page = await next();
      list.append(...neighbours(page.links, direction, state.path, state.record).map((group) => entry(group, state)));
    } }, t("moreLinks")) : null;
    return h("section", { class: `linked ${direction}` }, h("h2", {}, groups.length ? t(direction, { n: groups.length }).replace(number(groups.length), count) : t(direction === "out" ? "noOut" : "noIn")), list, more);
  });
}

function entry(group, state) {
  const anchors = group.anchors.length ? h("span", { class: "anchors" }, `“${group.anchors.slice(0, 3).join("”, “")}”`) : null;
  if (group.path !== null) {
    return h("li", {}, h("a", { href: write({ ...state, path: group.path, record: group.record, from: null, to: null }) }, crumbs(group.name)), anchors);
  }
  const address = group.state === "external" ? outside(group.name) : null;
  return h("li", { class: group.state }, address ? h("a", { href: address, rel: "noopener noreferrer" }, crumbs(group.name)) : h("span", { class: "nowhere" }, crumbs(group.name)),
    h("span", { class: "badge" }, t(group.state)), anchors);
}

/** The text of a part between two code points as headings and paragraphs, what was found marked. */
function paragraphs(part, from, to, state, code) {
  const { text } = part;
  const marks = units(text, part.highlights);
  const unit = (point) => unitOf(text, point - part.char_start);
  const [begin, end] = [unit(from), unit(to)];
  const cited = state.from !== null && state.to !== null && state.to > part.char_start && state.from < part.char_end ? [unit(state.from), unit(state.to)] : null;
  const headings = [];
  for (const passage of part.passages) {
    const last = passage.heading_path.at(-1);
    if (!last || passage.char_start < part.char_start) continue;
    const at = unit(passage.char_start);
    if (text.startsWith(last, at) && (at === 0 || text[at - 1] === "\n") && [undefined, "\n"].includes(text[at + last.length])) {
      headings.push({ start: at, end: at + last.length, level: Math.min(4, passage.heading_path.length + 1) });
    }
  }
  const blocks = [];
  let at = begin;
  for (const heading of headings) {
    if (heading.start < at || heading.end > end) continue;
    blocks.push({ start: at, end: heading.start, level: 0 }, heading);
    at = heading.end;
  }
  blocks.push({ start: at, end, level: 0 });
  let first = true;
  const inline = ({ start, end }, whole = false) => {
    const bounds = cited ? [Math.min(Math.max(cited[0], start), end), Math.max(start, Math.min(cited[1], end))] : [start, start];
    const piece = (a, b) => {
      const nodes = [];
      let done = a;
      for (const [x, y] of found.filter(([x, y]) => x + start >= a && y + start <= b)) {
        nodes.push(text.slice(done, x + start), h("mark", {}, text.slice(x + start, y + start)));
        done = y + start;
      }
      return [...nodes, text.slice(done, b)];
    };
    const found = within(marks, start, end);
    if (whole || bounds[1] <= bounds[0]) return piece(start, end);
    const anchor = first ? { id: "cited", tabindex: -1 } : {};
    first = false;
    return [piece(start, bounds[0]), h("span", { class: "cited", ...anchor }, piece(bounds[0], bounds[1])), piece(bounds[1], end)];
  };
  // A block that is cited as a whole is marked as a whole: the mark then runs on from one to the next.
  const block = (tag, kind, place) => {
    const whole = cited && cited[0] <= place.start && place.end <= cited[1];
    const anchor = whole && first ? { id: "cited", tabindex: -1 } : {};
    if (!whole) return h(tag, { class: kind }, inline(place));
    first = false;
    return h(tag, { class: `${kind} cited`, ...anchor }, inline(place, true));
  };
  return blocks.flatMap((one) => {
    if (one.level) return [block(`h${one.level}`, "head", one)];
    const runs = [];
    for (const match of text.slice(one.start, one.end).matchAll(code ? /[^]+/g : /\S[^]*?(?=\n\s*\n|$(?![^]))/g)) {
      const run = { start: one.start + match.index, end: one.start + match.index + match[0].trimEnd().length };
      if (run.end > run.start) runs.push(block("div", "run", run));
    }
    return runs;
  });
}

