/** Send the reports that wait in the ledger. What is sent is the stored report: sending again never makes a second one. */

const TIMEOUT = 20_000;
const MOST_KEEPALIVE = 60_000; // browsers refuse more with keepalive
const LONGEST_WAIT = 86_400_000;
const TRY_LATER = [408, 425, 429, 500, 502, 503, 504];
const FIRST_PAUSE = 15_000;
const LONGEST_PAUSE = 3_600_000;

/** The line that is sent to the collector. */
export const lineOf = ({ survey, period, id, report }) => JSON.stringify({ survey, period, id, report });

/**
 * Send what waits, of one survey or of all: `{ sent, unconfirmed, refused, waiting }`.
 *
 * Only one tab or worker sends at a time. A report whose fate is unknown is sent again later; the collector counts it once.
 */
export async function sendWaiting(device, { digest = null, endpoint = null } = {}) {
  const found = { sent: 0, unconfirmed: 0, refused: 0, waiting: 0 };
  const work = async () => {
    for (const one of await device.waiting(digest)) {
      const address = endpoint ?? one.endpoint;
      const wait = (one.after ?? 0) - Date.now();
      const early = wait > 0 && wait <= LONGEST_WAIT; // otherwise the clock was changed
      const skip = !address || early;
      if (!skip) await device.settle(one.digest, one.period, "made"); // marks it as tried, before it leaves
      const { state, after } = skip ? { state: "waiting" } : await deliver(address, lineOf(one));
      found[state] += 1;
      if (state !== "waiting") await device.settle(one.digest, one.period, state);
      else if (after) await device.settle(one.digest, one.period, "made", after);
    }
    return found;
  };
  const done = device.store.alone ? await device.store.alone(work) : await work();
  return done ?? { ...found, waiting: (await device.waiting(digest)).length };
}

/** Send again after each pause, and when the device is online again, until the returned function is called. */
export function keepSending(device, { firstPause = FIRST_PAUSE } = {}) {
  let [pause, timer, stopped] = [firstPause, null, false];
  const attempt = async () => {
    const { waiting } = await sendWaiting(device).catch(() => ({ waiting: 1 }));
    pause = waiting ? Math.min(2 * pause, LONGEST_PAUSE) : firstPause;
    if (!stopped) timer = setTimeout(attempt, pause);
  };
  const online = () => {
    clearTimeout(timer);
    pause = firstPause;
    attempt();
  };
  globalThis.addEventListener?.("online", online);
  attempt();
  return () => {
    stopped = true;
    clearTimeout(timer);
    globalThis.removeEventListener?.("online", online);
  };
}

/**
 * Post one line: without credentials, referrer or cache.
 *
 * The body is plain text, so no preflight request is needed. A collector on another origin that has no CORS headers gives
 * an error although the report arrived. Then the line is sent once more without looking at the response: only a network
 * failure can be seen, and the outcome is "unconfirmed".
 */
async function deliver(address, line) {
  try {
    return outcome(await posted(address, line, "cors", "error"));
  } catch {
    try {
      const response = await posted(address, line, "no-cors", "follow"); // no-cors allows no other redirect mode
      return response.type === "opaque" ? { state: "unconfirmed" } : outcome(response);
    } catch {
      return { state: "waiting" };
    }
  }
}

export function posted(address, body, mode, redirect) {
  return fetch(address, {
    method: "POST",
    body,
    mode,
    redirect,
    credentials: "omit",
    referrer: "",
    referrerPolicy: "no-referrer",
    cache: "no-store",
    keepalive: body.length < MOST_KEEPALIVE,
    signal: AbortSignal.timeout(TIMEOUT),
  });
}

function outcome(response) {
  if (response.ok) return { state: "sent" };
  if (!TRY_LATER.includes(response.status)) return { state: "refused" };
  const seconds = Number(response.headers.get("Retry-After"));
  const wait = Number.isFinite(seconds) && seconds > 0 ? Math.min(1000 * seconds, LONGEST_WAIT) : 0;
  return { state: "waiting", after: wait ? Date.now() + wait : null };
}
