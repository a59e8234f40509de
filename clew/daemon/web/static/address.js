// The page's address is its state: whoever is sent it sees the same, and the back button works.

const FACETS = ["type", "lang", "folder", "tag"];

/** What an address asks for. */
export function read(search = location.search) {
  const given = new URLSearchParams(search);
  const whole = (name) => { const value = parseInt(given.get(name), 10); return Number.isSafeInteger(value) && value >= 0 ? value : null; };
  const view = given.get("v");
  return {
    view: ["search", "document", "links", "ask", "status"].includes(view) ? view : "search",
    collection: given.get("c"),
    q: given.get("q") ?? "",
    facets: Object.fromEntries(FACETS.map((name) => [name, given.getAll(name)])),
    where: given.getAll("where"),
    hops: Math.min(whole("hops") ?? 1, 2),
    path: given.get("path"),
    record: given.get("record"),
    from: whole("from"),
    to: whole("to"),
    route: given.get("route") ?? "auto",
  };
}

/** The address of a state, relative to the page. */
export function write(state) {
  const out = new URLSearchParams();
  const set = (name, value, usual) => { if (value !== null && value !== undefined && value !== "" && value !== usual) out.set(name, value); };
  set("v", state.view, "search");
  set("c", state.collection);
  set("q", state.q);
  for (const name of FACETS) for (const value of state.facets?.[name] ?? []) out.append(name, value);
  for (const expression of state.where ?? []) out.append("where", expression);
  set("hops", state.hops, 1);
  if (state.view === "document" || state.view === "links") {
    for (const name of ["path", "record", "from", "to"]) set(name, state[name]);
  }
  if (state.view === "ask") set("route", state.route, "auto");
  return `?${out}`;
}

let render = () => {};
/** Called with every new state. */
export const onState = (callback) => { render = callback; };

/** Go somewhere: one more step for the back button, or in place of this one. */
export function go(state, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"]({ inside: true }, "", write(state));
  render(state);
}

/** Note a state in the address without showing it again. */
export function keep(state) {
  history.replaceState({ inside: true }, "", write(state));
}

addEventListener("popstate", () => render(read()));

/** Links to this page are followed without loading it again. */
addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (!link) return;
  const href = link.getAttribute("href");
  if (href === "#main") {
    event.preventDefault();
    document.getElementById("main").focus();
  }
  if (!href.startsWith("?") && href !== "./") return;
  event.preventDefault();
  go(read(href === "./" ? "" : href));
});

/** A value in a `where` expression: quoted, so that nothing in it steers. */
const quoted = (value) => `"${value.replace(/["\\]/g, "\\$&")}"`;

const CONDITIONS = {
  type: (values) => `type=${values.map(quoted).join(",")}`,
  lang: (values) => `lang=${values.map(quoted).join(",")}`,
  tag: (values) => `tag=${values.map(quoted).join(",")}`,
  folder: (values) => `path:${values.map((value) => `${quoted(value)}/**`).join(",")}`,
};

/** The `where` expression of a state's filters; without those of one facet, to count its other values. */
export function expression(state, without = null) {
  const parts = FACETS.filter((name) => name !== without && state.facets[name].length).map((name) => CONDITIONS[name](state.facets[name]));
  return [...parts, ...state.where.map((one) => `(${one})`)].join(" ") || null;
}

export { FACETS };
