// What a search is narrowed by: chips that can be taken away, and counts to add more.

import { expression, FACETS, go } from "./address.js";
import { of, request } from "./api.js";
import { h, icon, put } from "./dom.js";
import { languageName, number, t } from "./strings.js";

const FEW = 6;
const open = new Set(); // facets that show more than the first few

const label = (name, value) => (name === "lang" ? languageName(value) : value);
const toggled = (state, name, value) => {
  const had = state.facets[name].includes(value);
  // A folder inside of the chosen one takes its place: nothing lies in both otherwise.
  const kept = state.facets[name].filter((one) => one !== value && !(name === "folder" && value.startsWith(`${one}/`)));
  return { ...state, facets: { ...state.facets, [name]: had ? kept : [...kept, value] } };
};

/** The filters as chips; each is a button that takes it away. `now` gives the state at the time of a click: words were typed, or
 * another filter chosen, since these were drawn. */
export function chips(now) {
  const state = now();
  const one = (text, without) =>
    h("li", {}, h("button", { type: "button", class: "chip", "aria-label": t("removeFilter", { value: text }), onclick: () => go(without(now())) }, h("span", {}, text), icon("close")));
  const all = [
    ...FACETS.flatMap((name) => state.facets[name].map((value) => one(`${t(name)}: ${label(name, value)}`, (at) => toggled(at, name, value)))),
    ...state.where.map((text) => one(text, (at) => ({ ...at, where: at.where.filter((other) => other !== text) }))),
  ];
  return all.length ? h("ul", { class: "chips", "aria-label": t("filters") }, all) : null;
}

/** A field for a filter in words; `wrong` of the service points at its column. */
export function field(now) {
  const wrong = h("p", { class: "wrong", id: "filter-wrong", role: "alert", hidden: true });
  const input = h("input", { type: "text", id: "filter", class: "field", placeholder: t("filterHint"), autocomplete: "off", autocapitalize: "off", spellcheck: "false", maxlength: 2000, "aria-describedby": "filter-wrong" });
  const add = async (event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (!text) return;
    try {
      await request("GET", of(now().collection, "facets"), { params: { where: text, limit: 1 } });
    } catch (problem) {
      wrong.hidden = false;
      const at = problem.column;
      put(wrong, h("strong", {}, t("filterWrong")), " ", problem.message.split("\n")[0],
        at === null ? null : h("code", { class: "caret" }, text.slice(0, at), h("span", {}, text.slice(at, at + 1) || " "), text.slice(at + 1)));
      input.setAttribute("aria-invalid", "true");
      return;
    }
    go({ ...now(), where: [...now().where.filter((other) => other !== text), text] });
  };
  return h("form", { class: "filter", onsubmit: add, autocomplete: "off" },
    h("label", { for: "filter" }, t("filterLabel")), h("div", { class: "joined" }, input, h("button", { type: "submit", class: "button" }, t("add"))), wrong);
}

/** Counts of what the filters leave, by facet. Each value toggles a filter. */
export async function counts(state, signal) {
  const ask = (where, below) => request("GET", of(state.collection, "facets"), { params: { where, below, limit: 20 }, signal });
  const folder = state.facets.folder.length === 1 ? state.facets.folder[0] : null;
  const [whole, ...others] = await Promise.all([
    ask(expression(state), folder),
    // Of a facet that is chosen already, the other values count what choosing them, too, would add.
    ...FACETS.filter((name) => name !== "folder" && state.facets[name].length).map(async (name) => [name, (await ask(expression(state, name))).fields[name]]),
  ]);
  return { documents: whole.documents, fields: { ...whole.fields, ...Object.fromEntries(others) } };
}

/** Counts as lists of buttons. */
export function panel(now, found) {
  const state = now();
  return FACETS.filter((name) => found.fields[name]?.length || state.facets[name].length).map((name) => {
    const chosen = state.facets[name];
    const values = [...chosen.filter((value) => !found.fields[name].some((one) => one.value === value)).map((value) => ({ value, documents: null })), ...found.fields[name]];
    const list = h("ul");
    const draw = () => {
      const shown = open.has(name) ? values : values.slice(0, Math.max(FEW, chosen.length));
      put(list, shown.map(({ value, documents }) =>
        h("li", {}, h("button", { type: "button", class: "value", "data-facet": name, "data-value": value, "aria-pressed": String(chosen.includes(value)), onclick: () => go(toggled(now(), name, value)) },
          h("span", { class: "name" }, label(name, value)), documents === null ? null : h("span", { class: "count" }, number(documents))))));
    };
    const more = h("button", { type: "button", class: "plain", "aria-expanded": String(open.has(name)), onclick: () => {
      open.has(name) ? open.delete(name) : open.add(name);
      more.setAttribute("aria-expanded", String(open.has(name)));
      put(more, t(open.has(name) ? "fewer" : "more"));
      draw();
    } }, t(open.has(name) ? "fewer" : "more"));
    draw();
    return h("section", { class: "facet" }, h("h3", {}, t(name)), list, values.length > FEW ? more : null);
  });
}

