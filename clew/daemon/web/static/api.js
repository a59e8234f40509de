// Questions to the service that this page came from.

const BASE = new URL("v1/", new URL("./", location.href.split(/[?#]/)[0]));
const KEY = "clew-key";

/** What went wrong, as the service put it. */
export class Problem extends Error {
  constructor(status, problem = {}) {
    super(problem.detail ?? problem.title ?? "");
    this.status = status;
    this.title = problem.title ?? null;
    this.type = (problem.type ?? "").replace("urn:clew:problem:", "");
    this.column = problem.column ?? null;
    this.retry = null; // seconds
  }
}

export const key = {
  get: () => { try { return sessionStorage.getItem(KEY); } catch { return key.held ?? null; } },
  set: (value) => { key.held = value; try { sessionStorage.setItem(KEY, value); } catch { /* it is held by this page alone */ } },
  forget: () => { key.held = null; try { sessionStorage.removeItem(KEY); } catch { /* nothing is stored */ } },
};

let asking = null;
let askForKey = async () => null;
/** `ask(wrong)` asks whoever sits there for a key, once for all requests that wait for it; null: there is none. */
export const onKeyNeeded = (ask) => { askForKey = ask; };

const sleep = (seconds, signal) => new Promise((done, stop) => {
  const timer = setTimeout(done, seconds * 1000);
  signal?.addEventListener("abort", () => { clearTimeout(timer); stop(signal.reason); });
});

async function send(method, path, { params, body, signal, onEvent }) {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(params ?? {})) if (value !== null && value !== undefined) url.searchParams.set(name, value);
  const headers = { Accept: onEvent ? "text/event-stream" : "application/json" };
  const used = key.get();
  if (used) headers.Authorization = `Bearer ${used}`;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(url, { method, headers, body: body ? JSON.stringify(body) : undefined, signal, credentials: "omit" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0);
  }
  if (response.ok && (response.headers.get("Content-Type") ?? "").startsWith("text/event-stream")) return told(response.body, onEvent, used);
  if (response.ok) return { used, answer: await response.json() };
  let problem = {};
  try { problem = await response.json(); } catch { /* not of this service: the status says all there is */ }
  const failure = new Problem(response.status, problem);
  failure.retry = Number(response.headers.get("Retry-After")) || null;
  return { used, failure };
}

/** An answer that comes as events: each is told of, `done` holds the whole, `error` a problem. */
async function told(body, onEvent, used) {
  let rest = "";
  for (const reader = body.pipeThrough(new TextDecoderStream()).getReader(); ; ) {
    const { value, done } = await reader.read();
    if (done) return { used, failure: new Problem(0) }; // it broke off before it was whole
    const blocks = (rest + value).split(/\r?\n\r?\n/);
    rest = blocks.pop();
    for (const block of blocks) {
      const lines = block.split(/\r?\n/);
      const name = lines.find((line) => line.startsWith("event:"))?.slice(6).trim();
      const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
      if (!name || !data) continue;
      const given = JSON.parse(data);
      if (name === "done") return { used, answer: given };
      if (name === "error") return { used, failure: new Problem(given.status ?? 500, given) };
      onEvent(name, given);
    }
  }
}

/** The answer's JSON. A Problem where there is none; a key is asked for, and a short wait waited, by itself. */
export async function request(method, path, options = {}) {
  for (let tries = 0; ; tries++) {
    const { used, answer, failure } = await send(method, path, options);
    if (!failure) return answer;
    if (failure.status === 401) {
      if (used && used === key.get()) key.forget();
      asking ??= key.get() ? Promise.resolve(key.get()) : askForKey(Boolean(used)).finally(() => { asking = null; });
      const given = await asking;
      asking = null;
      if (options.signal?.aborted) throw options.signal.reason;
      if (given) continue;
    } else if ([429, 503].includes(failure.status) && failure.type !== "not-ready" && failure.retry !== null && failure.retry <= 3 && tries < 2) {
      await sleep(failure.retry, options.signal);
      continue;
    }
    throw failure;
  }
}

/** A request about one collection. */
export const of = (collection, what = "") => `collections/${encodeURIComponent(collection)}${what && "/"}${what}`;
