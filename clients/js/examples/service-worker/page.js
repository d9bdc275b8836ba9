// In the page: make the report here, and let the service worker send it, also after the page is closed.
import { Survey } from "../../dist/sfumato-survey.js";

export async function answer(address, publicKey, value) {
  const registration = await navigator.serviceWorker.register(new URL("./worker.js", import.meta.url), { type: "module" });
  const survey = await Survey.load(address, { publicKey });
  const report = await survey.report(value);
  const worker = registration.active ?? registration.waiting ?? registration.installing;
  while (worker.state !== "activated") {
    await new Promise((resolve) => worker.addEventListener("statechange", resolve, { once: true }));
  }
  const planned = await registration.sync?.register("sfumato-reports").then(() => true, () => false);
  if (!planned) worker.postMessage("send"); // no background sync in this browser: send now
  return report;
}
