// A service worker that sends what the pages could not: register it with { type: "module" }.
// Pages and workers of one origin share one ledger, so no report is made or charged twice.
import { BrowserStore, Device, sendWaiting } from "../../dist/sfumato-survey.js";

const device = new Device(new BrowserStore());

self.addEventListener("sync", (event) => {
  if (event.tag === "sfumato-reports") event.waitUntil(send());
});
self.addEventListener("message", (event) => event.waitUntil(send()));

async function send() {
  const { waiting } = await sendWaiting(device);
  if (waiting) throw new Error("some reports wait"); // background sync tries again later
}
