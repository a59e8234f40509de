// A question to the whole collection: the answer, the route it took and why, and where each statement stands.

import { go, keep } from "./address.js";
import { of, request } from "./api.js";
import { announce, h, note, put, waiting } from "./dom.js";
import { addressOf, crumbs } from "./hits.js";
import { number, t } from "./strings.js";

const ROUTES = ["auto", "local", "mixed", "global", "drift"];
/** Statuses by which a service says that it has no answers to give. */
const ABSENT = [404, 405, 501];
const LONG = 20; // characters of a word that is kept on one line with the numbers behind it

export class AskView {
  constructor(fail, withdraw) {
    this.fail = fail;
    this.withdraw = withdraw; // takes the tab away
    this.running = null;
    this.last = null; // the last answer: the back button shows it again at once
  }

  leave() {
    this.running?.abort();
  }

  show(main, state) {
    this.state = state;
    this.input = h("textarea", { id: "asked", class: "question", rows: 2, placeholder: t("askPlaceholder"), maxlength: 10000, onkeydown: (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); this.submit(); }
      if (event.key === "Escape" && this.input.value) { event.preventDefault(); this.input.value = ""; }
    } });
    this.input.value = state.q;
    this.route = h("select", { id: "route", class: "quiet" }, ROUTES.map((name) => h("option", { value: name, selected: name === state.route }, t(name))));
    this.out = h("section", { class: "answering", "aria-labelledby": "answer" });
    put(main, h("div", { class: "ask" },
      h("form", { class: "asking tall", onsubmit: (event) => { event.preventDefault(); this.submit(); } },
        h("label", { for: "asked", class: "hidden" }, t("askLabel")), this.input,
        h("div", { class: "controls" }, h("div", { class: "option" }, h("label", { for: "route" }, t("route")), this.route), h("button", { type: "submit", class: "button strong" }, t("askGo")))),
      this.out));
    this.input.focus({ preventScroll: true });
    if (this.last?.id === this.id(state)) this.draw(this.last.answer);
    else if (state.q.trim()) this.ask();
    else put(this.out, h("div", { class: "hello" }, h("h1", { id: "answer" }, t("askHello")), h("p", {}, t("askHelloDetail"))));
  }

  id = (state) => JSON.stringify([state.collection, state.q.trim(), state.route]);

  submit() {
    const state = { ...this.state, q: this.input.value, route: this.route.value };
    if (!state.q.trim()) return;
    if (this.id(state) === this.id(this.state)) { this.state = state; keep(state); this.ask(); } else go(state);
  }

  async ask() {
    this.running?.abort();
    const { signal } = (this.running = new AbortController());
    const { state } = this;
    put(this.out, h("p", { class: "count", id: "answer" }, t("asking")), waiting(3));
    announce(t("asking"));
    try {
      const answer = await request("POST", of(state.collection, "ask"), {
        signal, body: { question: state.q.trim(), route: state.route },
        onEvent: (name, told) => { if (name === "route" && !signal.aborted) put(this.out, h("h2", { class: "hidden", id: "answer" }, t("answer")), routed(told), waiting(3)); },
      });
      if (signal.aborted) return;
      this.last = { id: this.id(state), answer };
      this.draw(answer);
      announce(answer.abstained ? t("abstained") : t("answer"));
    } catch (problem) {
      if (signal.aborted) return;
      // A collection that is not there, and a graph that was not built, are said by the service in words of its own.
      if (ABSENT.includes(problem.status) && !problem.type.startsWith("no-")) return this.withdraw();
      put(this.out, this.fail(problem, () => this.ask()));
    }
  }

  draw(answer) {
    const { state } = this;
    const known = new Map(answer.citations.map((one) => [one.n, one]));
    const refer = (n) => {
      const one = known.get(n);
      return one ? h("a", { class: "cite", href: addressOf(state, one), title: one.path, "aria-label": t("source", { n }) }, String(n)) : `[${n}]`;
    };
    // Numbers stay with the word before them: alone at the beginning of a line they would stand for nothing.
    const withReferences = (text) => text.split(/(\S*\s*\[\d+(?:\s*,\s*\d+)*\](?:\s*\[\d+(?:\s*,\s*\d+)*\])*)/).map((piece, place) => {
      if (place % 2 === 0) return piece;
      const at = piece.search(/\[\d/);
      return h("span", { class: at <= LONG ? "whole" : null }, piece.slice(0, at), piece.slice(at).match(/\d+/g).map((n) => refer(Number(n))));
    });
    const lines = (answer.answer ?? "").split(/\n+/).filter((line) => line.trim());
    const bullets = lines.length > 1 && lines.every((line) => /^\s*[-*•]\s/.test(line));
    const body = bullets ? h("ul", {}, lines.map((line) => h("li", {}, withReferences(line.replace(/^\s*[-*•]\s+/, ""))))) : lines.map((line) => h("p", {}, withReferences(line)));
    const cost = answer.cost ?? {};
    const spent = [
      cost.model_calls ? t("calls", { n: cost.model_calls }) : null,
      cost.context_chars ? t("context", { n: number(cost.context_chars) }) : null,
      answer.communities_considered ? t("considered", { n: answer.communities_considered }) : null,
      answer.reports_used?.length ? t("reports", { n: answer.reports_used.length }) : null,
      cost.money ? number(cost.money, 4) : null,
      answer.took_ms ? t("inTime", { n: number(answer.took_ms) }) : null,
    ].filter(Boolean);
    const degraded = Object.entries(answer.degraded ?? {});
    put(this.out,
      h("h2", { class: "hidden", id: "answer" }, t("answer")),
      routed(answer),
      degraded.length ? h("div", { class: "aside warn" }, h("div", {}, h("p", {}, t("degraded")), h("ul", {}, degraded.map(([name, why]) => h("li", {}, h("strong", {}, name), " ", why))))) : null,
      answer.abstained || !lines.length ? note(t("abstained"), lines.length ? null : t("abstainedDetail")) : null,
      lines.length ? h("div", { class: "answer" }, body) : null,
      answer.citations.length ? h("section", { class: "sources" }, h("h3", {}, t("sources")),
        h("ol", {}, answer.citations.map((one) => h("li", { value: one.n }, h("span", { class: "n", "aria-hidden": "true" }, one.n), h("div", {},
          h("a", { class: "title", href: addressOf(state, one) }, one.title || crumbs(one.path)), h("p", { class: "where" }, h("span", { class: "file" }, crumbs(one.path)), one.record ? h("span", { class: "spot" }, t("record", { n: one.record })) : null),
          h("blockquote", {}, one.text)))))) : null,
      answer.follow_ups?.length ? h("section", { class: "followed" }, h("h3", {}, t("followUps")),
        h("ol", {}, answer.follow_ups.map((one) => h("li", {}, h("p", { class: "lead" }, one.question ?? String(one)), one.answer ? h("p", {}, withReferences(one.answer)) : null)))) : null,
      spent.length ? h("p", { class: "count spent" }, h("span", { class: "hidden" }, `${t("cost")}: `), spent.join(" · ")) : null);
  }
}

const routed = ({ route, reason }) => h("p", { class: "routed" }, h("span", { class: "badge route" }, `${t("route")}: ${t(route)}`), h("span", { class: "reason" }, reason));
