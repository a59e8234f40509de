// The links around a document, drawn: who links to it, and what it links to. The lists beside the picture say the same in words.

import { write } from "./address.js";
import { h, outside, s } from "./dom.js";
import { t } from "./strings.js";
import { nameOf, short } from "./text.js";

const MOST = 12; // neighbours drawn on a side; the list has all
const ROW = 46;
const NARROW = 620; // px; below, the thread runs downwards

/** Links by what stands at their other end: the heaviest first, those that lead nowhere last. */
export function neighbours(rows, direction, path, record) {
  const groups = new Map();
  for (const row of rows) {
    if (direction === "out" && record !== null && row.source_record !== record) continue;
    if (direction === "in" && record !== null && row.target_record !== record) continue;
    const other = direction === "out" ? row.target : row.source;
    const otherRecord = (direction === "out" ? row.target_record : row.source_record) ?? null;
    if (other === path && otherRecord === (record ?? null)) continue; // to itself
    const name = other === null ? row.href : otherRecord !== null ? `${other} · ${otherRecord}` : other;
    const id = JSON.stringify([other, otherRecord, other === null ? row.href : null]);
    const group = groups.get(id) ?? { path: other, record: otherRecord, name, state: row.state, anchors: [], count: 0, weight: 0 };
    group.count++;
    group.weight = Math.max(group.weight, row.weight ?? 0);
    if (row.anchor && !group.anchors.includes(row.anchor)) group.anchors.push(row.anchor);
    groups.set(id, group);
  }
  const place = { resolved: 0, external: 1, dangling: 2 };
  return [...groups.values()].sort((a, b) => place[a.state] - place[b.state] || b.weight - a.weight || b.count - a.count || (a.name < b.name ? -1 : 1));
}

const BALL = "M-11 -4c6-5 15-5 21-.5M-12 2c7-6 16-6 23-1M-9 8c5-4 11-5 17-3";

function ball(x, y) {
  return s("g", { class: "ball", transform: `translate(${x} ${y})` }, s("circle", { cx: 0, cy: 0, r: 14 }), s("path", { d: BALL }));
}

function node(group, state, x, y, anchor, room) {
  const letters = Math.max(8, Math.floor(room / 7.2));
  const label = group.path === null ? group.name : nameOf(group.path) + (group.record !== null ? ` · ${group.record}` : "");
  const words = group.anchors[0] ?? "";
  const side = anchor === "end" ? -12 : 12;
  const texts = [
    s("text", { class: "name", x: x + side, y: words ? y - 2 : y + 4, "text-anchor": anchor }, short(label, letters, true)),
    words ? s("text", { class: "words", x: x + side, y: y + 14, "text-anchor": anchor }, `“${short(words, Math.floor(letters * 1.05))}”`) : null,
  ];
  const dot = s("circle", { class: `dot ${group.state}`, cx: x, cy: y, r: 5 });
  const title = s("title", {}, group.name + (group.anchors.length ? `\n“${group.anchors.slice(0, 5).join("”, “")}”` : ""));
  const href = group.path !== null ? write({ ...state, path: group.path, record: group.record, from: null, to: null }) : group.state === "external" ? outside(group.name) : null;
  return href ? s("a", { href, class: "node", rel: group.path === null ? "noopener noreferrer" : null }, title, dot, texts) : s("g", { class: "node" }, title, dot, texts);
}

const thread = (d, group) => s("path", { class: `edge ${group.state}`, d, "stroke-width": 1.2 + 2.3 * Math.min(1, Math.max(0, group.weight)) });

/** The picture, so many pixels wide. */
export function picture(part, sides, state, width) {
  const out = sides.out.groups.slice(0, MOST);
  const into = sides.in.groups.slice(0, MOST);
  const left = { out: sides.out.groups.length - out.length, in: sides.in.groups.length - into.length };
  const label = t("neighbourhood", { name: part.title || nameOf(part.path) });
  const draw = width < NARROW ? downwards : across;
  const { height, nodes } = draw(out, into, part, state, width);
  const more = (direction) => (left[direction] > 0 || sides[direction].next ? h("p", { class: `rest ${direction}` }, `${direction === "in" ? "→" : "←"} ${t("inPicture", { n: Math.max(left[direction], 1) })}`) : null);
  return [
    h("div", { class: "ends" }, h("p", {}, into.length ? t("in", { n: sides.in.groups.length }) : t("noIn")), h("p", {}, out.length ? t("out", { n: sides.out.groups.length }) : t("noOut"))),
    s("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label }, nodes),
    left.in > 0 || left.out > 0 ? h("div", { class: "ends" }, more("in") ?? h("p"), more("out") ?? h("p")) : null,
  ];
}

function across(out, into, part, state, width) {
  const height = Math.max(into.length, out.length, 3) * ROW + 30;
  const [middle, centre] = [width / 2, height / 2];
  const room = width * 0.31;
  const y = (place, count) => centre + (place - (count - 1) / 2) * ROW;
  const edges = [];
  const dots = [];
  into.forEach((group, place) => {
    const [x, at] = [room + 12, y(place, into.length)];
    edges.push(thread(`M${x} ${at}C${x + (middle - x) * 0.55} ${at} ${middle - (middle - x) * 0.55} ${centre} ${middle - 17} ${centre}`, group));
    dots.push(node(group, state, x, at, "end", room));
  });
  out.forEach((group, place) => {
    const [x, at] = [width - room - 12, y(place, out.length)];
    edges.push(thread(`M${middle + 17} ${centre}C${middle + (x - middle) * 0.55} ${centre} ${x - (x - middle) * 0.55} ${at} ${x} ${at}`, group));
    dots.push(node(group, state, x, at, "start", room));
  });
  const name = s("text", { class: "centre", x: middle, y: centre + 36, "text-anchor": "middle" }, short(part.title || nameOf(part.path), Math.floor((width * 0.3) / 7.5), false));
  return { height, nodes: [edges, ball(middle, centre), name, dots] };
}

function downwards(out, into, part, state, width) {
  const x = 30;
  const room = width - x - 24;
  const top = 24;
  const centre = top + into.length * ROW + 10;
  const height = centre + out.length * ROW + 44;
  const edges = [];
  const dots = [];
  into.forEach((group, place) => {
    const at = top + place * ROW;
    edges.push(thread(`M${x + 14} ${at}C${x - 6} ${at} ${x} ${at + 26} ${x} ${Math.min(at + 46, centre - 17)}L${x} ${centre - 17}`, group));
    dots.push(node(group, state, x + 14, at, "start", room - 14));
  });
  out.forEach((group, place) => {
    const at = centre + (place + 1) * ROW + 6;
    edges.push(thread(`M${x} ${centre + 17}L${x} ${Math.max(at - 46, centre + 17)}C${x} ${at - 26} ${x - 6} ${at} ${x + 14} ${at}`, group));
    dots.push(node(group, state, x + 14, at, "start", room - 14));
  });
  const name = s("text", { class: "centre", x: x + 26, y: centre + 5, "text-anchor": "start" }, short(part.title || nameOf(part.path), Math.floor(room / 8)));
  return { height, nodes: [edges, ball(x, centre), name, dots] };
}
