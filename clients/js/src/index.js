/** Answer surveys: load one, check it, report. The same bytes as the Python client, from the same randomness. */

export { Survey } from "./survey.js";
export { Device, DEFAULT_CAPS } from "./device.js";
export { MemoryStore, WebStore } from "./stores.js";
export { Refused } from "./refusals.js";
