/** The respondent's page: read the answer, randomise it here, show the report, send it, and take it back. */

import { Survey } from "./sfumato-survey.js";

const { survey: id, address } = document.body.dataset;
const base = new URL("..", location.href);
const endpoint = new URL(address, base).href;
const MOST_CHOICES = 60; // shown as buttons
const MOST_OFFERED = 50;
const find = (name) => document.getElementById(name);
let survey;

const WORDS = {
  made: "It was not sent yet.",
  sent: "Your report was sent. You can withdraw it until the batch that contains it is published.",
  unconfirmed: "Your report was sent; the server did not confirm it. You can withdraw it until its batch is published.",
  refused: "The server did not accept this report.",
  withdrawn: "Your report was withdrawn. It will not be counted.",
  handed: "You have already answered in this period.",
};

async function start() {
  try {
    const document_ = await fetch(new URL(`s/${id}/survey.json`, base), { credentials: "omit" });
    survey = await Survey.load(new Uint8Array(await document_.arrayBuffer()));
    const made = await survey.device.latest(survey.manifest);
    const present = made && (survey.manifest.periodDays === 0 || made.period === presentPeriod());
    if (present) await show({ ...made, repeated: true });
    else offer();
    await showLeft();
  } catch (error) {
    explain(error);
  }
}

function presentPeriod() {
  const { created, periodDays } = survey.manifest;
  return Math.floor((Date.now() - created) / (periodDays * 86_400_000));
}

function offer() {
  const { domain } = survey;
  const choices = find("choices");
  if (domain.kind === "numbers") choices.append(numberField(domain));
  else if (domain.kind === "words") choices.append(...wordField(domain));
  else if (domain.kind === "categories" && domain.labels.length > MOST_CHOICES) choices.append(...labelField(domain));
  else for (const label of domain.labels) choices.append(choice(label, domain.kind === "questions" ? "checkbox" : "radio"));
  if (domain.kind === "questions") choices.querySelector("legend").textContent = "Tick what is true. Your answers stay in this browser";
  find("answer").hidden = false;
}

function choice(text, type) {
  const label = document.createElement("label");
  label.className = "choice";
  const input = Object.assign(document.createElement("input"), { type, name: "value", value: text });
  if (type === "radio") input.required = true;
  label.append(input, text);
  return label;
}

/** Many labels: type, and pick one of those that begin or continue like it. */
function labelField({ labels }) {
  const label = document.createElement("label");
  const input = Object.assign(document.createElement("input"), { type: "text", name: "value", required: true, autocomplete: "off" });
  const list = Object.assign(document.createElement("datalist"), { id: "labels" });
  input.setAttribute("list", "labels");
  const known = new Set(labels);
  const tell = () => {
    const wanted = input.value.toLowerCase();
    const found = [];
    for (const text of labels) {
      if (text.toLowerCase().includes(wanted)) found.push(text);
      if (found.length === MOST_OFFERED) break;
    }
    list.replaceChildren(...found.map((text) => Object.assign(document.createElement("option"), { value: text })));
    input.setCustomValidity(known.has(input.value) ? "" : "Pick one of the listed answers.");
  };
  input.addEventListener("input", tell);
  label.append(`Your answer, one of ${labels.length.toLocaleString("en")}`, input);
  tell();
  return [label, list];
}

function numberField({ lower, upper }) {
  const label = document.createElement("label");
  const input = Object.assign(document.createElement("input"), {
    type: "number", name: "value", required: true, step: "any", min: lower, max: upper, inputMode: "decimal",
  });
  label.append(`A number from ${lower} to ${upper}`, input);
  return label;
}

/** A text field, and below it what will be randomised: the person sees every change to the word. */
function wordField({ length, alphabet }) {
  const label = document.createElement("label");
  const input = Object.assign(document.createElement("input"), {
    type: "text", name: "value", required: true, autocomplete: "off", autocapitalize: "off", spellcheck: false,
  });
  const kept = Object.assign(document.createElement("p"), { id: "kept", className: "small" });
  input.setAttribute("aria-describedby", "kept");
  const about = alphabet ? `The first ${length} characters count` : `The first ${length} letters count (fewer, if they have accents)`;
  const tell = () => {
    const word = wordOf(input.value);
    input.setCustomValidity(fits(word) ? "" : `Use only these characters: ${alphabet}`);
    kept.textContent = word && fits(word) ? `This word will be randomised: “${survey.kept(word)}”` : `${about}.`;
  };
  input.addEventListener("input", tell);
  label.append("Your word", input);
  tell();
  return [label, kept];
}

/** Spaces around the word are removed, and capital letters are made small if the survey has no capital letters. */
function wordOf(text) {
  const { alphabet } = survey.domain;
  const word = text.trim();
  return alphabet && alphabet === alphabet.toLowerCase() ? word.toLowerCase() : word;
}

function fits(word) {
  try {
    if (word) survey.read(word);
    return true;
  } catch {
    return false;
  }
}

function answerOf(form) {
  const fields = [...form.querySelectorAll("input[name=value]")];
  if (survey.domain.kind === "numbers") return Number(fields[0].value);
  if (survey.domain.kind === "words") return wordOf(fields[0].value);
  if (survey.domain.kind === "questions") return fields.map((field) => field.checked);
  return fields.length === 1 ? fields[0].value : fields.find((field) => field.checked).value;
}

async function show(report) {
  find("answer").hidden = true;
  find("line").textContent = Survey.line(report);
  const cost = report.repeated ? "This report was made before; showing it costs nothing." : costOf(report);
  find("cost").textContent = cost;
  const waiting = report.state === "made";
  find("made-title").textContent = waiting
    ? "This is what will be sent, and nothing else"
    : "This is the report of this device";
  find("send").hidden = !waiting;
  find("withdraw").hidden = !["made", "sent", "unconfirmed"].includes(report.state);
  find("withdraw").textContent = waiting ? "Do not send it" : "Withdraw my report";
  find("made").hidden = false;
  find("status").textContent = WORDS[report.state];
}

function costOf({ epsilon, delta }) {
  const also = delta === "0" ? "" : ` and δ = ${deltaText(delta)}`;
  return `Making it cost ε = ${costText(epsilon)}${also} of your privacy budget on this site.`;
}

/** A survey with a δ needs the person's own permission: the cap on δ is 0 until the person raises it. */
async function offerDelta() {
  const { delta, priceDelta, surveyDelta } = await survey.device.left(survey.manifest);
  const button = find("allow");
  const [isAllowed, isPossible] = [delta, surveyDelta].map((left) => Number(left) >= Number(priceDelta));
  button.hidden = find("answer").hidden || priceDelta === "0" || isAllowed || !isPossible;
  button.textContent = `Allow a probability of up to δ = ${deltaText(priceDelta)} for one answer to this survey`;
}

async function showLeft() {
  await offerDelta();
  const { epsilon, price, priceDelta } = await survey.device.left(survey.manifest);
  const also = priceDelta === "0" ? "" : ` and δ = ${deltaText(priceDelta)}`;
  find("left").textContent = `One answer costs ε = ${costText(price)}${also}. Your budget for this survey on this site: ε = ${leftText(epsilon)} is left.`;
}

/** Four decimals: costs are rounded up and what is left is rounded down. The ledger has all digits. */
const costText = (text) => String(Math.ceil(Number(text) * 1e4) / 1e4);
const deltaText = (text) => {
  const places = 10 ** (2 - Math.floor(Math.log10(Number(text))));
  return String(Math.ceil(Number(text) * places) / places);
};
const leftText = (text) => String(Math.floor(Number(text) * 1e4) / 1e4);

function explain(error) {
  find("status").textContent = error.hint ? `${error.message} ${error.hint}` : "Something went wrong. Nothing was sent.";
}

async function busy(work) {
  const buttons = [...document.querySelectorAll("button")];
  for (const button of buttons) button.disabled = true;
  try {
    await work();
  } catch (error) {
    explain(error);
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}

find("answer").addEventListener("submit", (event) => {
  event.preventDefault();
  busy(async () => {
    await show(await survey.report(answerOf(event.target)));
    event.target.reset(); // the true answer does not stay on the page
    await showLeft();
    find("made").focus();
  });
});

find("allow").addEventListener("click", () =>
  busy(async () => {
    await survey.device.allowDelta(survey.manifest);
    find("status").textContent = "You allowed it. You can answer now.";
    await showLeft();
  }),
);

find("send").addEventListener("click", () =>
  busy(async () => {
    const { waiting } = await survey.send({ endpoint });
    await show({ ...(await survey.device.latest(survey.manifest)), repeated: true });
    if (waiting) find("status").textContent = "The server could not be reached. The report waits in this browser: try again later.";
  }),
);

find("withdraw").addEventListener("click", () =>
  busy(async () => {
    await show({ ...(await survey.withdraw({ endpoint })), repeated: true });
  }),
);

start();
