/** Types of sfumato-survey. Amounts of epsilon are decimal texts: they have more digits than a number. */

export interface Store {
  /** Read the ledger, change it and store it, one call at a time. The text is null if there is no ledger yet. */
  update<Result>(change: (text: string | null) => Promise<[string, Result]>): Promise<Result>;
  /** Run this work unless another tab or process runs it; then return null. */
  alone?<Result>(work: () => Promise<Result>): Promise<Result | null>;
}

export interface Caps {
  perSurvey: string;
  perMonth: string;
  lifetime: string;
  /** The most delta in total: "0" refuses every survey whose guarantee has a delta. */
  delta: string;
}

export interface Spent {
  survey: string;
  month: string;
  lifetime: string;
  surveyDelta: string;
  delta: string;
}

/** "handed": an earlier version gave the report to the application, which sent it itself. */
export type State = "made" | "sent" | "unconfirmed" | "refused" | "withdrawn" | "handed";

export interface StoredReport {
  survey: string;
  period: number;
  id: string;
  report: number | string;
  state: State;
}

export interface Report extends StoredReport {
  /** What this call cost. */
  epsilon: string;
  delta: string;
  /** Whether the report was made before. */
  repeated: boolean;
}

export interface Delivery {
  sent: number;
  /** Sent to a collector without CORS headers: its answer cannot be seen. */
  unconfirmed: number;
  refused: number;
  waiting: number;
}

export type Domain =
  | { kind: "categories"; labels: string[] }
  | { kind: "questions"; labels: string[] }
  | { kind: "numbers"; lower: string; upper: string }
  | { kind: "words"; length: number; alphabet: string };

/** A label or its index; a number; true or false for each question; any word. */
export type Answer = string | number | boolean | boolean[] | Record<string, boolean>;

export interface Manifest {
  readonly id: string;
  readonly digest: string;
  readonly question: string;
  readonly endpoint: string;
  readonly periodDays: number;
  readonly minimumBatch: number;
  /** Milliseconds since 1970. */
  readonly created: number;
  readonly expires: number;
  readonly publicKey: string;
  readonly signature: string;
  readonly statement: Readonly<Record<string, unknown>>;
}

/** The trusted keys of a team: several at a time, each with a time of validity, and revoked ones. */
export class KeyRing {
  /** Read the ring that comes with the application. */
  static read(source: string | Uint8Array): Promise<KeyRing>;
  readonly serial: number;
  readonly keys: readonly { publicKey: string; from: number; until: number; revoked: boolean }[];
  trusts(manifest: Manifest): boolean;
  /** The newer ring of this document, which a key of this ring must have signed. */
  update(source: string | Uint8Array): Promise<KeyRing>;
}

export interface ReportOptions {
  /** The time that chooses the period (default: now). */
  at?: Date;
  /** The team's signed announcement of a period, which replaces the device's clock. */
  announcement?: string | Uint8Array;
}

export class Survey {
  static load(
    source: string | URL | Uint8Array | ArrayBuffer,
    options?: { publicKey?: string | null; trusted?: KeyRing | null; cap?: string | number | null; device?: Device | null },
  ): Promise<Survey>;
  /** The line that is sent to the collector. */
  static line(report: StoredReport): string;
  readonly manifest: Manifest;
  readonly device: Device | null;
  readonly id: string;
  readonly question: string;
  readonly domain: Domain;
  /** The loss of one report, computed from the table. */
  readonly epsilon: string;
  /** The delta of a new answer: "0", unless the mechanism has one. */
  readonly delta: string;
  /** The loss of all reports on one answer. */
  readonly longitudinalEpsilon: string;
  /** For words: the part of a word that is reported. A longer word is cut. */
  kept(word: string): string;
  verify(publicKey: string): Promise<boolean>;
  report(value: Answer, options?: ReportOptions): Promise<Report>;
  send(options?: { endpoint?: string | null }): Promise<Delivery>;
  withdraw(options?: { endpoint?: string | null }): Promise<StoredReport | null>;
}

export class Device {
  constructor(store: Store, options?: { clock?: () => Date; announced?: boolean });
  caps(changes?: { [Name in keyof Caps]?: string | number }): Promise<Caps>;
  spent(manifest: Manifest): Promise<Spent>;
  /** What is left, and what one more answer costs. `surveyDelta` is what is left of the survey's own limit on delta. */
  left(manifest: Manifest): Promise<{ epsilon: string; price: string; delta: string; priceDelta: string; surveyDelta: string }>;
  /** Allow the delta of one more answer to this survey only; return the delta that it may have in total. */
  allowDelta(manifest: Manifest): Promise<string>;
  latest(manifest: Manifest): Promise<StoredReport | null>;
  where(): Promise<{ store: string; origin: string | null; persisted: boolean }>;
}

/** IndexedDB with strict durability, under a Web Lock: for pages and workers. */
export class BrowserStore implements Store {
  constructor(name?: string);
  update<Result>(change: (text: string | null) => Promise<[string, Result]>): Promise<Result>;
  alone<Result>(work: () => Promise<Result>): Promise<Result | null>;
}

/** Keeps the ledger as long as the page or process lives: for tests. */
export class MemoryStore implements Store {
  update<Result>(change: (text: string | null) => Promise<[string, Result]>): Promise<Result>;
}

/** Send what waits in the ledger: of all surveys, or of the survey with this digest. */
export function sendWaiting(device: Device, options?: { digest?: string | null; endpoint?: string | null }): Promise<Delivery>;

/** Send again after each pause and when the device is online again, until the returned function is called. */
export function keepSending(device: Device, options?: { firstPause?: number }): () => void;

export const DEFAULT_CAPS: Readonly<Caps>;

/** A refusal: nothing was sent, and no budget was spent. All texts are constant. */
export class Refused extends Error {
  readonly code: string;
  readonly hint: string;
}
