// Elements from values. Data only ever becomes text nodes and attributes that cannot run: no markup is parsed anywhere.

const SVG = "http://www.w3.org/2000/svg";
const PLAIN = /^(?:class|id|type|name|value|for|lang|dir|title|href|rel|role|tabindex|placeholder|autocomplete|spellcheck|enterkeyhint|maxlength|rows|open|hidden|disabled|selected|colspan|scope|datetime|start|x|y|x1|y1|x2|y2|cx|cy|r|d|width|height|viewBox|preserveAspectRatio|fill|stroke|stroke-width|stroke-linecap|stroke-linejoin|text-anchor|dx|dy|transform|max|min|autocapitalize)$|^(?:aria|data)-[a-z-]+$/;

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on") && typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (PLAIN.test(name)) node.setAttribute(name, value === true ? "" : String(value));
    else throw new Error(`${name} is no attribute of this page`);
  }
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** An HTML element: h("p", {class: "note"}, "text", node, [more]). */
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

/** An SVG element. */
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** Put these in place of what a node holds. */
export function put(node, ...children) {
  node.replaceChildren();
  append(node, children);
  return node;
}

/** An address that may be opened: http, https or mailto; null for any other scheme. */
export function outside(address) {
  try {
    const url = new URL(address);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

const ICONS = {
  close: "M5 5l10 10M15 5L5 15",
  back: "M12 4l-6 6 6 6",
  right: "M4 10h12M11 5l5 5-5 5",
  left: "M16 10H4M9 5l-5 5 5 5",
  out: "M8 4H4v12h12v-4M11 3h6v6M17 3l-8 8",
  warn: "M10 3 2 17h16L10 3Zm0 5.500v4M10 14.800v.01",
};

/** A small picture beside a text; it says nothing to a screen reader. */
export const icon = (name) =>
  s("svg", { viewBox: "0 0 20 20", width: 16, height: 16, "aria-hidden": "true", class: "glyph" },
    s("path", { d: ICONS[name], fill: "none", stroke: "currentColor", "stroke-width": 1.8, "stroke-linecap": "round", "stroke-linejoin": "round" }));

/** Say something to a screen reader, without moving the focus. */
export function announce(text) {
  document.getElementById("announce").textContent = text;
}

/** What is shown while something is on its way, where it takes long enough to be seen. */
export const waiting = (lines = 3) =>
  h("div", { class: "waiting", "aria-hidden": "true" }, Array.from({ length: lines }, () => h("div", {}, h("span"), h("span"), h("span"))));

/** A note in place of content: nothing there, or something went wrong. */
export const note = (title, detail, ...more) =>
  h("div", { class: "note" }, h("p", { class: "lead" }, title), detail ? h("p", {}, detail) : null, more);
