// How a collection stands, while it changes.

import { write } from "./address.js";
import { of, request } from "./api.js";
import { announce, h, put, s, waiting } from "./dom.js";
import { crumbs } from "./hits.js";
import { ago, bytes, date, languageName, number, t } from "./strings.js";

const EVERY = 2000; // ms between two looks at how fresh the collection is: a look at memory
const WHOLE = 5; // and every so many of them, or when a snapshot came, at everything: sizes are listed from storage

export class StatusView {
  constructor(fail) {
    this.fail = fail;
    this.timer = null;
    this.running = null;
  }

  leave() {
    clearTimeout(this.timer);
    this.running?.abort();
    this.state = null;
  }

  async show(main, state) {
    this.leave();
    this.state = state;
    this.shown = null;
    this.looks = 0;
    const { signal } = (this.running = new AbortController());
    const root = h("div", { class: "status" }, h("h1", { class: "hidden", tabindex: -1 }, t("status")), waiting(5));
    put(main, root);
    root.querySelector("h1").focus({ preventScroll: true });
    this.parts = Object.fromEntries(["fresh", "upkeep", "contents", "ledger", "snapshots"].map((name) => [name, h("section", { class: `card ${name}` })]));
    const look = async () => {
      try {
        if (!document.hidden || this.shown === null) await this.look(root, signal);
        this.offline = false;
      } catch (problem) {
        if (signal.aborted) return;
        if (this.shown === null || problem.status === 404) { put(root, this.fail(problem, () => this.show(main, state))); return; }
        if (!this.offline) put(this.parts.fresh, this.fail(problem, null));
        this.offline = true;
      }
      if (!signal.aborted) this.timer = setTimeout(look, EVERY);
    };
    await look();
  }

  async look(root, signal) {
    const { collection } = this.state;
    const listed = await request("GET", "collections", { signal });
    const served = listed.collections.find((one) => one.name === collection);
    const moved = this.shown === null || served?.snapshot !== this.shown.snapshot;
    const whole = moved || this.offline || this.looks % WHOLE === 0 || this.phase === "indexing" || this.writing;
    this.looks++;
    if (!whole) return this.fresh(served);
    const [status, errors, snapshots] = await Promise.all([
      request("GET", of(collection, "status"), { signal }),
      moved ? request("GET", of(collection, "errors"), { params: { limit: 25 }, signal }) : null,
      moved ? request("GET", of(collection, "snapshots"), { params: { limit: 10 }, signal }).catch((problem) => { if (problem.status === 403) return null; throw problem; }) : null,
    ]);
    if (signal.aborted) return;
    if (this.shown === null) put(root, root.querySelector("h1"), Object.values(this.parts));
    else if (moved) announce(`${t("snapshot")} ${status.snapshot}`);
    this.shown = { snapshot: served?.snapshot ?? status.snapshot };
    this.phase = status.upkeep?.phase;
    this.fresh(status.served);
    this.contents(status);
    this.writing = status.run !== null;
    this.upkeep(status.upkeep, status.run);
    if (moved) {
      this.ledger(errors, signal);
      this.kept(snapshots, status.snapshot);
    }
  }

  fresh(served) {
    if (!served) return;
    const loading = served.newest !== null && served.newest > (served.snapshot ?? 0);
    put(this.parts.fresh, h("h2", {}, t("freshness"), h("span", { class: "live" }, h("span", { class: "pulse", "aria-hidden": "true" }), t("live"))),
      h("div", { class: "figures" }, figure(t("snapshot"), number(served.snapshot ?? 0)), figure(t("published"), served.age_seconds === null ? "–" : ago(served.age_seconds), served.published ? date(served.published) : null),
        figure(t("serving"), loading ? t("loading", { n: served.newest }) : t("current"))),
      served.error ? h("p", { class: "wrong" }, served.error) : null);
  }

  contents(status) {
    const share = status.chunks ? status.vectors / status.chunks : 0;
    const hasVectors = status.embedder !== "none";
    const degraded = Object.entries(status.degraded ?? {});
    put(this.parts.contents, h("h2", {}, t("contents")),
      h("div", { class: "figures" }, figure(t("filesLabel"), number(status.files.total ?? 0)), figure(t("documents"), number(status.documents)), figure(t("passagesLabel"), number(status.chunks)), figure(t("linksLabel"), number(status.links.total)), status.bytes === null ? null : figure(t("size"), bytes(status.bytes))),
      shares(t("filesLabel"), ["indexed", "failed", "skipped"].map((name) => [name, t(name), status.files[name] ?? 0])),
      shares(t("linksLabel"), [["resolved", t("resolved"), status.links.resolved], ["external", t("externalState"), status.links.external], ["dangling", t("danglingState"), status.links.dangling]]),
      hasVectors ? shares(t("vectors"), [["resolved", `${number(status.vectors)} / ${number(status.chunks)}`, status.vectors], ["rest", null, status.chunks - status.vectors]], share < 1) : null,
      shares(t("languages"), Object.entries(status.languages ?? {}).sort((a, b) => b[1] - a[1]).slice(0, 6).map(([code, count], place) => [`tone${place}`, code === "und" ? t("unknown") : languageName(code), count])),
      hasVectors ? h("p", { class: "count" }, `${t("embedder")}: ${status.embedder}`) : null,
      degraded.length ? h("div", { class: "aside warn" }, h("ul", {}, degraded.map(([name, why]) => h("li", {}, h("strong", {}, t(name)), " ", why)))) : null);
  }

  upkeep(upkeep, run) {
    const name = upkeep && t(`phase.${upkeep.phase}`);
    const held = this.parts.upkeep.querySelector("button");
    const button = held ?? h("button", { type: "button", class: "button", onclick: async () => {
      button.disabled = true;
      try {
        await request("POST", of(this.state.collection, "reindex"), { body: {} });
        announce(t("refreshing"));
        put(said, t("refreshing"));
      } catch (problem) {
        put(said, problem.message);
      } finally {
        button.disabled = false;
      }
    } }, t("refresh"));
    const said = held ? this.parts.upkeep.querySelector(".said") : h("span", { class: "said count", role: "status" });
    const focused = held !== null && document.activeElement === held;
    put(this.parts.upkeep, h("h2", {}, t("upkeep")),
      upkeep ? [
        h("div", { class: "figures" }, figure(t("phase"), [h("span", { class: `lamp ${upkeep.phase.replace(/ .*/, "")}`, "aria-hidden": "true" }), name === `phase.${upkeep.phase}` ? upkeep.phase : name]), figure(t("events"), number(upkeep.waiting)), figure(t("commits"), number(upkeep.commits)), upkeep.freshness_seconds === null ? null : figure(t("delay"), `${number(upkeep.freshness_seconds, 1)} s`), upkeep.failures ? figure(t("failures"), number(upkeep.failures)) : null),
        upkeep.phase === "indexing" || run ? progress(run) : null,
        upkeep.error ? h("p", { class: "wrong" }, upkeep.error) : null,
        h("p", { class: "act" }, button, " ", said),
      ] : [h("p", { class: "count" }, t("notHere")), run ? progress(run) : null]);
    if (focused) button.focus({ preventScroll: true });
  }

  ledger(page, signal) {
    const rows = (errors) => errors.map((one) => h("tr", {}, h("td", {}, h("a", { href: write({ ...this.state, view: "document", path: one.path, record: null, from: null, to: null }) }, crumbs(one.path))),
      h("td", {}, h("span", { class: "badge warn" }, one.error ?? one.state), one.message ? h("p", { class: "message" }, one.message) : null), h("td", { class: "figure" }, number(one.attempts)), h("td", {}, one.next_try ? date(one.next_try) : "–")));
    const body = h("tbody", {}, rows(page.errors));
    let next = page.next_cursor;
    const more = next ? h("button", { type: "button", class: "button more", onclick: async () => {
      const following = await request("GET", of(this.state.collection, "errors"), { params: { limit: 25, cursor: next }, signal });
      body.append(...rows(following.errors));
      next = following.next_cursor;
      if (!next) more.remove();
    } }, t("moreErrors")) : null;
    put(this.parts.ledger, h("h2", {}, t("ledger")),
      page.errors.length ? [h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": t("ledger") }, h("table", {}, h("thead", {}, h("tr", {}, ["path", "reason", "attempts", "next"].map((name) => h("th", { scope: "col" }, t(name))))), body)), more] : h("p", { class: "count" }, t("noErrors")));
  }

  kept(list, served) {
    put(this.parts.snapshots, h("h2", {}, t("snapshots")),
      list === null ? h("p", { class: "count" }, t("snapshotsHidden")) :
        h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": t("snapshots") }, h("table", {},
          h("thead", {}, h("tr", {}, ["snapshot", "published", "filesLabel", "passagesLabel", "linksLabel"].map((name) => h("th", { scope: "col", class: name === "published" || name === "snapshot" ? null : "figure" }, t(name))))),
          h("tbody", {}, list.snapshots.map((one) => h("tr", { class: one.number === served ? "now" : null }, h("th", { scope: "row" }, number(one.number)),
            h("td", {}, h("time", { datetime: one.published }, date(one.published)), one.pins.length ? h("span", { class: "badge" }, `${t("pins")} ${one.pins.join(", ")}`) : null),
            [one.files, one.chunks, one.links].map((count) => h("td", { class: "figure" }, number(count)))))))));
  }
}

const figure = (label, value, title = null) => h("div", { class: "one", title }, h("span", { class: "label" }, label), h("span", { class: "value" }, value));

/** How far a run is: a share where it is known, else a sign that something goes on. */
function progress(run) {
  const known = run !== null && run.percent !== null;
  const name = run === null ? t("phase.indexing") : t(`stage.${run.stage}`).replace("stage.", "");
  const of = (done, total, shown) => (total === null ? null : t("doneOf", { done: shown(done ?? 0), total: shown(total) }));
  const facts = run === null ? [] : [of(run.files_done, run.files_total, number), of(run.bytes_done, run.bytes_total, bytes)];
  return h("div", { class: "run" },
    h("p", { class: "count" }, h("strong", {}, known ? `${name}, ${number(run.percent)} %` : name), facts[0] ? h("span", {}, `${t("filesLabel")}: ${facts[0]}`) : null, facts[1] ? h("span", {}, facts[1]) : null),
    h("progress", { "aria-label": name, max: 100, ...(known ? { value: run.percent } : {}) }));
}

/** A bar cut in shares, with its legend. */
function shares(label, parts, moving = false) {
  const total = parts.reduce((sum, part) => sum + part[2], 0);
  if (!total) return null;
  let x = 0;
  const cuts = parts.filter((part) => part[2]).map(([kind, , count]) => {
    const width = (count / total) * 1000;
    const rect = s("rect", { class: kind, x, y: 0, width: Math.max(3, width), height: 10 });
    x += width;
    return rect;
  });
  return h("div", { class: moving ? "shares moving" : "shares" }, h("span", { class: "label" }, label), s("svg", { viewBox: "0 0 1000 10", preserveAspectRatio: "none", width: "100%", height: 10, "aria-hidden": "true" }, cuts),
    h("ul", {}, parts.filter((part) => part[1] && part[2]).map(([kind, name, count]) => h("li", {}, h("span", { class: `key ${kind}`, "aria-hidden": "true" }), name.includes("/") ? name : `${name} ${number(count)}`))));
}
