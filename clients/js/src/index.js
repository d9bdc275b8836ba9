/** Answer surveys: load one, check it, report, send. The same bytes as the Python client, from the same randomness. */

export { Survey } from "./survey.js";
export { Device, DEFAULT_CAPS } from "./device.js";
export { KeyRing } from "./key-ring.js";
export { keepSending, sendWaiting } from "./outbox.js";
export { BrowserStore } from "./browser-store.js";
export { MemoryStore } from "./memory-store.js";
export { Refused } from "./refusals.js";
