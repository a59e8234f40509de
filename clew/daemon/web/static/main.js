// The frame around the views: collections, language, light and dark, keys.

import { go, onState, read, write } from "./address.js";
import { key, onKeyNeeded, Problem, request } from "./api.js";
import { AskView } from "./ask.js";
import { DocumentView } from "./document.js";
import { h, note, put, waiting } from "./dom.js";
import { SearchView } from "./search.js";
import { StatusView } from "./status.js";
import { language, speak, t } from "./strings.js";

const main = document.getElementById("main");
const collectionChoice = document.getElementById("collection");
const languageChoice = document.getElementById("language");
const themeButton = document.getElementById("theme");
const forgetButton = document.getElementById("forget");
const tabs = [...document.querySelectorAll(".bar .tabs a")];
const dark = matchMedia("(prefers-color-scheme: dark)");
const AGAIN = 1500; // ms until a collection that is not ready is looked at again

let collections = null; // by name, once they were asked for
let current = null; // {view, state}
let answers = document.querySelector('meta[name="clew-ask"]').content === "yes";

/** An error in place of content, with a way to try again. */
function fail(problem, again) {
  if (!(problem instanceof Problem)) console.error(problem);
  const title = problem.status === 0 ? t("offline") : problem.status === 404 ? (problem.message || t("noDocument")) : problem.title ?? t("failedTitle");
  // A message of several lines points at a column of what stands in it.
  const [detail, ...pointed] = problem.status === 0 || problem.message === title ? [null] : (problem.message ?? "").split("\n");
  return h("div", { role: "alert" }, note(title, detail, pointed.length ? h("code", { class: "caret" }, pointed.join("\n")) : null, again ? h("button", { type: "button", class: "button", onclick: again }, t("retry")) : null));
}

const document_ = new DocumentView(fail);
const views = {
  search: new SearchView(fail),
  document: document_,
  links: document_,
  ask: new AskView(fail, () => {
    answers = false;
    go({ ...current.state, view: "search" }, { replace: true });
    main.prepend(h("p", { class: "aside", role: "status" }, t("noAsk")));
  }),
  status: new StatusView(fail),
};

async function render(state) {
  clearTimeout(render.timer);
  try {
    if (collections === null) {
      const late = setTimeout(() => put(main, waiting(4)), 200);
      try { collections = new Map((await request("GET", "collections")).collections.map((one) => [one.name, one])); } finally { clearTimeout(late); }
    }
  } catch (problem) {
    put(main, fail(problem, () => render(read())));
    return;
  }
  forgetButton.hidden = !key.get();
  if (!collections.size) { frame(state); put(main, note(t("noCollections"))); return; }
  const several = collections.size > 1;
  if (state.collection === null) state = { ...state, collection: preferred() };
  remember(state.collection);
  if (!answers && state.view === "ask") state = { ...state, view: "search" };
  if ((state.view === "document" || state.view === "links") && !state.path) state = { ...state, view: "search" };
  put(collectionChoice, [...collections.keys(), ...(collections.has(state.collection) ? [] : [state.collection])].map((name) => h("option", { value: name, selected: name === state.collection }, name)));
  collectionChoice.hidden = !several && collections.has(state.collection);
  const view = views[state.view];
  if (current && current.view !== view) current.view.leave();
  current = { view, state };
  frame(state);
  if (collections.get(state.collection)?.ready === false && state.view !== "status") {
    put(main, note(t("notReady"), t("notReadyDetail")));
    render.timer = setTimeout(() => { collections = null; render(read()); }, AGAIN);
    return;
  }
  view.show(main, state);
}

/** What stands around the view: the words, the tabs, the title. */
function frame(state) {
  document.documentElement.lang = language;
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = t(node.dataset.text);
  for (const node of document.querySelectorAll("[data-label]")) {
    node.setAttribute("aria-label", t(node.dataset.label));
    if (node.tagName === "BUTTON") node.title = t(node.dataset.label);
  }
  languageChoice.value = language;
  themeButton.setAttribute("aria-pressed", String(isDark()));
  for (const tab of tabs) {
    const name = tab.dataset.view;
    tab.hidden = name === "ask" && !answers;
    tab.setAttribute("href", write({ view: name, collection: state.collection, q: name === "status" ? "" : state.q }));
    if (name === state.view) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  document.body.dataset.view = state.view;
  document.title = `${state.q ? `${state.q} – ` : state.view === "search" ? "" : `${t(state.view === "links" || state.view === "document" ? "search" : state.view)} – `}clew`;
}

const preferred = () => {
  let last = null;
  try { last = sessionStorage.getItem("clew-collection"); } catch { /* the first one, then */ }
  return collections.has(last) ? last : collections.keys().next().value;
};
const remember = (name) => { try { sessionStorage.setItem("clew-collection", name); } catch { /* the address says it */ } };

const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";

themeButton.addEventListener("click", () => {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try { localStorage.setItem("clew-theme", next); } catch { /* it holds for this page, then */ }
  themeButton.setAttribute("aria-pressed", String(isDark()));
});
dark.addEventListener("change", () => themeButton.setAttribute("aria-pressed", String(isDark())));

languageChoice.addEventListener("change", () => {
  speak(languageChoice.value);
  current?.view.leave();
  put(main);
  render(read());
  languageChoice.focus();
});
collectionChoice.addEventListener("change", () => go({ ...read(""), view: ["document", "links"].includes(current.state.view) ? "search" : current.state.view, q: current.state.view === "status" ? "" : current.state.q, collection: collectionChoice.value }));
forgetButton.addEventListener("click", () => {
  key.forget();
  collections = null;
  current?.view.leave();
  put(main);
  render(read());
});

addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable]")) return;
  event.preventDefault();
  const field = document.querySelector("input.question, textarea.question");
  if (field) { field.focus(); field.select(); } else go({ ...current.state, view: "search" });
});

/** Ask whoever sits there for a key. */
onKeyNeeded((wrong) => new Promise((done) => {
  const input = h("input", { id: "key", class: "field", type: "password", autocomplete: "off", spellcheck: "false", "aria-describedby": "key-hint" });
  const dialog = h("dialog", { "aria-labelledby": "key-title" },
    h("form", { onsubmit: (event) => { event.preventDefault(); if (input.value.trim()) { key.set(input.value.trim()); dialog.close("given"); } } },
      h("h2", { id: "key-title" }, t("keyTitle")),
      wrong ? h("p", { class: "wrong", role: "alert" }, t("keyWrong")) : null,
      h("label", { for: "key" }, t("keyLabel")), input, h("p", { class: "count", id: "key-hint" }, t("keyHint")),
      h("div", { class: "act" }, h("button", { type: "submit", class: "button strong" }, t("use")), h("button", { type: "button", class: "button", onclick: () => dialog.close() }, t("cancel")))));
  dialog.addEventListener("close", () => { dialog.remove(); done(key.get()); });
  document.body.append(dialog);
  dialog.showModal();
  input.focus();
}));

onState(render);
frame(read());
render(read());
