// Search as you type.

import { expression, go, keep, write } from "./address.js";
import { of, request } from "./api.js";
import { announce, h, icon, note, put, waiting } from "./dom.js";
import { chips, counts, field, panel } from "./filters.js";
import { crumbs, hit } from "./hits.js";
import { bytes, date, number, t } from "./strings.js";
import { nameOf } from "./text.js";

const PAGE = 20;
const PAUSE = 140; // ms without a key until a question is sent
const SETTLED = 650; // ms until it is asked again with the second look at the best passages, which costs most of a search

const wide = matchMedia("(min-width: 900px)");

export class SearchView {
  constructor(fail) {
    this.fail = fail;
    this.state = null;
    this.timers = [];
    this.running = null; // the question under way
    this.counting = null;
    this.shown = null; // what the list shows: {key, hits}
  }

  /** Show a state in `main`. */
  show(main, state) {
    const again = this.state !== null && this.root?.isConnected && this.state.collection === state.collection;
    this.state = state;
    if (!again) this.build(main);
    if (this.input.value !== state.q) this.input.value = state.q;
    this.hops.value = String(state.hops);
    this.filters();
    this.ask(true);
    if (!again) this.input.focus({ preventScroll: true });
  }

  leave() {
    this.timers.forEach(clearTimeout);
    this.running?.abort();
    this.counting?.abort();
    this.state = null;
  }

  build(main) {
    this.input = h("input", { type: "search", id: "q", name: "q", class: "question", placeholder: t("placeholder"), autocomplete: "off", autocapitalize: "off", spellcheck: "false", enterkeyhint: "search", maxlength: 2000, oninput: () => this.typed() });
    this.hops = h("select", { id: "hops", class: "quiet", onchange: () => go({ ...this.now(), hops: Number(this.hops.value) }) },
      ["followNone", "followOne", "followTwo"].map((name, hops) => h("option", { value: hops }, t(name))));
    this.chips = h("div", { class: "chosen" });
    this.count = h("p", { class: "count" });
    this.list = h("div", { class: "list" });
    this.pressed = false;
    this.values = h("div", { class: "values", onpointerdown: () => {
      this.pressed = true;
      const released = () => setTimeout(() => { this.pressed = false; this.waits?.(); }); // after the click that comes of it
      for (const name of ["pointerup", "pointercancel"]) addEventListener(name, released, { once: true });
    } });
    this.side = h("details", { class: "side" }, h("summary", {}, t("filters")), field(() => this.now()), this.values);
    this.side.open = wide.matches;
    wide.onchange = () => { this.side.open = wide.matches; };
    this.root = h("div", { class: "search" },
      h("form", { role: "search", class: "asking", onsubmit: (event) => { event.preventDefault(); this.submit(); } },
        h("label", { for: "q", class: "hidden" }, t("question")), this.input, h("button", { type: "submit", class: "button strong" }, t("go"))),
      this.chips,
      h("div", { class: "columns" },
        this.side,
        h("section", { class: "results", "aria-labelledby": "results" },
          h("div", { class: "above" }, h("h2", { id: "results", class: "hidden" }, t("results")), this.count,
            (this.follow = h("div", { class: "option" }, h("label", { for: "hops" }, t("follow")), this.hops))),
          this.list)));
    put(main, this.root);
    this.shown = null;
    this.root.addEventListener("keydown", (event) => this.move(event));
  }

  now() {
    return { ...this.state, q: this.input.value };
  }

  typed() {
    this.timers.forEach(clearTimeout);
    this.timers = [setTimeout(() => { this.state = this.now(); keep(this.state); this.ask(false); }, PAUSE), setTimeout(() => this.ask(true), SETTLED)];
  }

  submit() {
    this.timers.forEach(clearTimeout);
    const state = this.now();
    if (write(state) === location.search || write(state) === `${location.search || "?"}`) { this.state = state; this.ask(true); } else go(state);
  }

  filters() {
    const had = this.chips.contains(document.activeElement); // the chip that was taken away: on to the next one
    put(this.chips, chips(() => this.now()));
    if (had) (this.chips.querySelector("button") ?? this.input).focus({ preventScroll: true });
    this.counting?.abort();
    this.counting = new AbortController();
    const { signal } = this.counting;
    counts(this.state, signal).then((found) => {
      if (!signal.aborted) this.counted(found);
    }).catch((problem) => { if (!signal.aborted && ![400, 401].includes(problem.status)) put(this.values); });
  }

  /** Show counts: not under a finger that is down, and with the focus where it was. */
  counted(found) {
    this.waits = () => {
      this.waits = null;
      const { facet, value } = document.activeElement?.dataset ?? {};
      put(this.values, panel(() => this.now(), found));
      if (facet) [...this.values.querySelectorAll("[data-facet]")].find((one) => one.dataset.facet === facet && one.dataset.value === value)?.focus({ preventScroll: true });
    };
    if (!this.pressed) this.waits();
  }

  /** Ask what the state asks; `whole`: with the second look. A question that came later ends one under way. */
  async ask(whole) {
    const { state } = this;
    if (state === null) return;
    const question = { text: state.q.trim(), where: expression(state), hops: state.hops };
    const id = JSON.stringify([question, state.collection]);
    this.running?.abort(); // also where the answer is there already: what is under way would take its place
    if (this.shown?.id === id && (this.shown.whole || !whole)) { this.running = null; this.root.classList.remove("busy"); return; }
    const running = (this.running = new AbortController());
    const late = setTimeout(() => { if (this.shown?.id !== id) { this.root.classList.add("busy"); if (!this.shown) put(this.list, waiting(4)); } }, 250);
    try {
      if (!question.text) await this.browse(question, id, running.signal);
      else {
        const result = await this.page(question, 0, whole, running.signal);
        if (running.signal.aborted) return;
        this.draw(result, question, id, whole);
      }
    } catch (problem) {
      if (running.signal.aborted) return;
      this.shown = { id: null };
      put(this.count);
      put(this.list, this.fail(problem, () => this.ask(true)));
    } finally {
      clearTimeout(late);
      if (this.running === running) this.root.classList.remove("busy");
    }
  }

  page({ text, where, hops }, offset, whole, signal) {
    return request("POST", of(this.state.collection, "search"), { signal, body: { text, k: PAGE, offset, where, expand: { hops }, sentences: whole ? "on" : "off", highlights: true } });
  }

  draw(result, question, id, whole) {
    const { state } = this;
    const focused = document.activeElement?.closest?.(".hit a.title")?.getAttribute("href");
    const items = h("ol", { class: "hits" }, result.hits.map((one) => hit(one, state)));
    const told = t("passages", { n: result.hits.length });
    const count = `${result.hits.length === PAGE ? t("firstPassages", { n: PAGE }) : told} · ${t("inTime", { n: number(result.took_ms) })}`;
    put(this.count, result.hits.length ? count : null);
    this.follow.hidden = false;
    const degraded = Object.entries(result.degraded);
    put(this.list,
      degraded.length ? h("div", { class: "aside warn" }, icon("warn"), h("div", {}, h("p", {}, t("degraded")), h("ul", {}, degraded.map(([name, why]) => h("li", {}, h("strong", {}, t(name)), " ", why))))) : null,
      result.abstained && result.hits.length ? h("div", { class: "aside" }, h("p", { class: "lead" }, t("unsure")), h("p", {}, t("unsureDetail")), result.reason ? h("p", { class: "why" }, result.reason) : null) : null,
      result.hits.length ? items : note(t("noPassages"), t("noPassagesDetail"), this.state.where.length || expression(this.state) ? h("button", { type: "button", class: "button", onclick: () => go({ ...this.now(), where: [], facets: { type: [], lang: [], folder: [], tag: [] } }) }, t("dropFilters")) : null),
      result.hits.length === PAGE ? this.more(items, question) : null);
    this.shown = { id, whole };
    if (focused) [...items.querySelectorAll("a.title")].find((link) => link.getAttribute("href") === focused)?.focus({ preventScroll: true });
    if (whole) announce(result.hits.length ? told : t("noPassages"));
  }

  more(items, question) {
    let offset = PAGE;
    const button = h("button", { type: "button", class: "button more", onclick: async () => {
      button.disabled = true;
      try {
        const { hits } = await this.page(question, offset, true);
        const added = hits.map((one) => hit(one, this.state));
        items.append(...added);
        offset += PAGE;
        added[0]?.querySelector("a.title").focus();
        announce(t("passages", { n: items.children.length }));
        if (hits.length < PAGE) button.remove();
      } catch (problem) {
        button.after(this.fail(problem, null));
      } finally {
        button.disabled = false;
      }
    } }, t("morePassages"));
    return button;
  }

  /** Without words: the files that the filters leave. */
  async browse({ where }, id, signal, cursor = null, rows = null) {
    const found = await request("GET", of(this.state.collection, "files"), { params: { where, limit: 50, cursor }, signal });
    if (signal?.aborted) return;
    const items = found.files.map((file) => h("li", { class: "hit file" }, h("article", {},
      h("div", { class: "found" },
        h("h3", {}, h("a", { class: "title", href: write({ ...this.state, view: "document", path: file.path, record: null, from: null, to: null }) }, file.title || nameOf(file.path))),
        h("p", { class: "where" }, h("span", { class: "file" }, crumbs(file.path)), file.type ? h("span", { class: "spot" }, file.type) : null, h("span", { class: "spot" }, bytes(file.size)), file.mtime ? h("span", { class: "spot" }, date(file.mtime)) : null, file.state === "indexed" ? null : h("span", { class: "badge warn" }, t(file.state)))))));
    const next = found.next_cursor;
    const button = next ? h("button", { type: "button", class: "button more", onclick: async () => {
      button.remove();
      try { await this.browse({ where }, id, undefined, next, rows); } catch (problem) { rows.after(this.fail(problem, null)); }
    } }, t("moreFiles")) : null;
    if (cursor) {
      rows.append(...items);
      items[0]?.querySelector("a.title").focus();
      if (button) rows.after(button);
      return;
    }
    rows = h("ol", { class: "hits files" }, items);
    put(this.count, where ? (next ? t("allFiles") : t("files", { n: found.files.length })) : null);
    this.follow.hidden = true;
    put(this.list,
      where ? null : h("div", { class: "hello" }, h("h1", {}, t("hello")), h("p", {}, t("helloDetail")),
        h("p", { class: "keys" }, [["/", "keys"], ["↑ ↓", "keysMove"], ["Enter", "keysOpen"], ["Esc", "keysBack"]].map(([cap, name]) => h("span", {}, h("kbd", {}, cap), " ", t(name))))),
      where ? null : h("h2", { class: "over" }, t("allFiles")), items.length ? rows : note(t("noPassages")), button);
    this.shown = { id, whole: true };
  }

  /** Up and down through the list; Escape goes back to the field, and empties it there. */
  move(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.isComposing) return;
    const links = [...this.list.querySelectorAll("a.title")];
    const at = links.indexOf(document.activeElement);
    const inField = document.activeElement === this.input;
    if (event.key === "ArrowDown" && (inField || at >= 0)) links[Math.min(at + 1, links.length - 1)]?.focus();
    else if (event.key === "ArrowUp" && at > 0) links[at - 1].focus();
    else if (event.key === "ArrowUp" && at === 0) this.input.focus();
    else if (event.key === "Escape" && inField && this.input.value) { this.input.value = ""; this.typed(); }
    else if (event.key === "Escape" && !inField) { this.input.focus(); this.input.select(); }
    else return;
    event.preventDefault();
    document.activeElement?.closest?.(".hit")?.scrollIntoView({ block: "nearest" });
  }
}
