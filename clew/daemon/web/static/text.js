// Words of a question in a text, and places in it.

const WORD = /[\p{L}\p{N}]+/gu;
const COMMON = new Set(
  ("a an and are as at be by can do does for from has have how i in is it its may much my of on or our so that the their there this to was we what when where which who why will with you your " +
    "o a os as um uma de do da dos das e é em no na nos nas por para com como que quem qual quando onde se ao à " +
    "и в во не на я с со как а то все она так его но да ты к у же вы за бы по от о из ему что кто где когда для или это").split(" "),
);

/** A word as it is compared: small letters without accents; ё is е. */
const fold = (word) => word.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

/** The words of a question that are worth marking. */
export function wordsOf(question) {
  const words = (question.match(WORD) ?? []).map((word) => [word.toLowerCase(), fold(word)]);
  const telling = words.filter(([plain, folded]) => !COMMON.has(plain) && (folded.length > 1 || !/[\p{Script=Latin}\p{Script=Cyrillic}]/u.test(folded)));
  return (telling.length ? telling : words).map(([, folded]) => folded);
}

const ENDINGS = /(?:ations?|atures?|ings?|ions?|ed|es|ly|s|e|y|cao|coes|mente|ando|endo|ad[oa]s?|id[oa]s?|ar|er|ir|[oa]s?|ами|ями|ого|его|ому|ему|ыми|ими|ая|яя|ое|ее|ые|ие|ый|ий|ой|ей|ов|ев|ам|ям|ах|ях|ом|ем|ть|ешь|ет|ют|ут|[аеиоуыьюяй])$/;

/** A word without its ending, roughly: what is left has three letters or more. */
function stem(word) {
  const left = word.replace(ENDINGS, "");
  return left.length >= 3 ? left : word;
}

/** Whether a word is a form of another: equal, of one stem, or the same up to the last two letters of a long word. */
function akin(word, wanted) {
  if (word === wanted) return true;
  if (word[0] !== wanted[0]) return false;
  if (stem(word) === stem(wanted)) return true;
  const shorter = Math.min(word.length, wanted.length);
  const shared = shorter - 2;
  return shared >= 5 && Math.abs(word.length - wanted.length) <= 4 && word.slice(0, shared) === wanted.slice(0, shared);
}

/** Where a text has these words: [start, end] in its UTF-16 units, rising. */
export function matches(text, words, limit = 2000) {
  const found = [];
  if (!words.length) return found;
  for (const match of text.matchAll(WORD)) {
    const word = fold(match[0]);
    if (words.some((wanted) => akin(word, wanted))) found.push([match.index, match.index + match[0].length, word]);
    if (found.length === limit) break;
  }
  return found;
}

/** The stretch of a text, of about so many characters, that has most different words of the question. */
export function excerpt(text, words, length = 300) {
  if (text.length <= length * 1.25) return [0, text.length];
  const found = matches(text, words, 400);
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
