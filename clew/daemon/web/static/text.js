// Places in a text.

/** [start, end] in code points, as the service tells them, as UTF-16 units; rising, and together one walk through the text. */
export function units(text, spans) {
  let [unit, seen] = [0, 0];
  const unitAt = (point) => {
    for (; seen < point && unit < text.length; seen++) unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
    return unit;
  };
  return (spans ?? []).map(([start, end]) => [unitAt(start), unitAt(end)]);
}

/** Those that lie within two places of a text, counted from the first. */
export const within = (spans, start, end) => spans.filter(([from, to]) => from >= start && to <= end).map(([from, to]) => [from - start, to - start]);

/** The stretch of a text, of about so many characters, that has most different words among those that are marked. */
export function excerpt(text, spans, length = 300) {
  if (text.length <= length * 1.25) return [0, text.length];
  const found = spans.slice(0, 400).map(([from, to]) => [from, to, text.slice(from, to).toLowerCase().slice(0, 5)]);
  let best = [0, -1];
  for (let first = 0; first < found.length; first++) {
    const different = new Set();
    for (let last = first; last < found.length && found[last][1] - found[first][0] <= length; last++) different.add(found[last][2]);
    if (different.size > best[1]) best = [found[first][0], different.size];
  }
  let start = Math.max(0, Math.min(best[0] - 60, text.length - length));
  let end = Math.min(text.length, start + length);
  for (let step = 0; step < 40 && start > 0 && /\S/.test(text[start - 1]); step++) start--; // not into a word
  for (let step = 0; step < 40 && end < text.length && /\S/.test(text[end]); step++) end++;
  return [start, end];
}

/** UTF-16 offset of a code point's number. */
export function unitOf(text, point) {
  if (point <= 0) return 0;
  let unit = 0;
  for (let seen = 0; seen < point && unit < text.length; seen++) unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
  return unit;
}


/** At most so many characters, with an ellipsis; `middle` keeps both ends. */
export function short(text, length, middle = false) {
  const whole = Array.from(text);
  if (whole.length <= length) return text;
  if (!middle) return whole.slice(0, length - 1).join("").trimEnd() + "…";
  const head = Math.ceil((length - 1) / 2);
  return whole.slice(0, head).join("") + "…" + whole.slice(whole.length - (length - 1 - head)).join("");
}

/** The last part of a path. */
export const nameOf = (path) => path.slice(path.lastIndexOf("/") + 1) || path;
