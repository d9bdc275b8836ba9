// The editor of the Ask page: colours, completion of words of the schema, and a preview that follows what is typed.
// Without this script, the page works with its two buttons.

const form = document.querySelector("form.asking");
const area = form.querySelector("textarea");
const editor = area.parentElement;
const coloured = editor.querySelector("pre");
const list = editor.querySelector(".completions");
const preview = document.getElementById("preview");
const button = form.querySelector('button[value="ask"]');
const words = JSON.parse(form.dataset.words);

const keywords = new Set(words.keywords.flatMap((phrase) => phrase.split(" ")));
const functions = new Set(words.functions);
const columns = Object.values(words.tables).flat();
const names = new Set([...Object.keys(words.tables), ...columns].map((name) => name.toLowerCase()));
const every = [...Object.keys(words.tables), ...new Set(columns), ...words.functions, ...words.keywords];
const TOKENS = /('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|([\p{L}_][\p{L}\p{N}_]*)|([^'"\p{L}_]+)/gu;

function findKind(text, word) {
  if (text) return "text";
  if (!word) return "";
  const upper = word.toUpperCase();
  if (names.has(word.toLowerCase())) return "name";
  if (keywords.has(upper)) return "keyword";
  return functions.has(upper) ? "function" : "";
}

function colour() {
  coloured.replaceChildren();
  for (const [part, text, quoted, word] of area.value.matchAll(TOKENS)) {
    const kind = quoted ? "name" : findKind(text, word);
    const piece = kind ? document.createElement("span") : document.createTextNode(part);
    if (kind) {
      piece.className = kind;
      piece.textContent = part;
    }
    coloured.append(piece);
  }
  coloured.append("\n");
  coloured.scrollTop = area.scrollTop;
}

// -- the preview ------------------------------------------------------------

let waiting = 0;
let running = null;

async function showPreview() {
  running?.abort();
  running = new AbortController();
  const body = new URLSearchParams(new FormData(form));
  try {
    const answer = await fetch(form.dataset.preview, { method: "POST", body, signal: running.signal });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    preview.replaceChildren(...page.body.childNodes);
  } catch (error) {
    if (error.name !== "AbortError") preview.textContent = "The service cannot be reached.";
    return;
  }
  const fact = preview.querySelector("[data-button]");
  button.textContent = fact ? fact.dataset.button : "Ask";
  button.disabled = !fact || fact.dataset.fits === "no";
}

function previewSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(showPreview, 250);
}

// -- completion -------------------------------------------------------------

function findWord() {
  const before = area.value.slice(0, area.selectionStart);
  return /[\p{L}_][\p{L}\p{N}_]*$/u.exec(before)?.[0] ?? "";
}

function offer(always) {
  const word = findWord();
  const start = word.toLowerCase();
  const found = every.filter((one) => one.toLowerCase().startsWith(start) && one.toLowerCase() !== start).slice(0, 12);
  if (!found.length || (!always && start.length < 2)) return close();
  list.replaceChildren(
    ...found.map((one, index) => {
      const item = document.createElement("li");
      item.setAttribute("role", "option");
      item.id = `completion-${index}`;
      item.textContent = one;
      item.setAttribute("aria-selected", String(index === 0));
      item.addEventListener("mousedown", (event) => {
        event.preventDefault();
        accept(one);
      });
      return item;
    }),
  );
  const line = area.value.slice(0, area.selectionStart).split("\n").length;
  list.style.setProperty("top", `${line * 1.5 + 0.9}rem`);
  list.hidden = false;
  area.setAttribute("aria-activedescendant", "completion-0");
}

function close() {
  list.hidden = true;
  area.removeAttribute("aria-activedescendant");
}

function choose(step) {
  const items = [...list.children];
  const now = items.findIndex((item) => item.getAttribute("aria-selected") === "true");
  const next = (now + step + items.length) % items.length;
  items[now].setAttribute("aria-selected", "false");
  items[next].setAttribute("aria-selected", "true");
  items[next].scrollIntoView({ block: "nearest" });
  area.setAttribute("aria-activedescendant", items[next].id);
}

function accept(text) {
  const word = findWord();
  const at = area.selectionStart;
  const written = words.functions.includes(text) ? `${text}(` : /^[\p{L}_][\p{L}\p{N}_ ]*$/u.test(text) ? text : `"${text}"`;
  area.setRangeText(written, at - word.length, at, "end");
  close();
  colour();
  previewSoon();
}

area.addEventListener("input", () => {
  colour();
  previewSoon();
  offer(false);
});
area.addEventListener("scroll", () => {
  coloured.scrollTop = area.scrollTop;
});
area.addEventListener("blur", close);
area.addEventListener("keydown", (event) => {
  if (event.ctrlKey && event.code === "Space") {
    event.preventDefault();
    offer(true);
  } else if (event.ctrlKey && event.key === "Enter") {
    form.requestSubmit(button);
  } else if (!list.hidden) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Tab" || event.key === "Enter") {
      event.preventDefault();
      accept(list.querySelector('[aria-selected="true"]').textContent);
    } else if (event.key === "Escape") {
      close();
    }
  }
});
for (const name of ["epsilon", "assume"]) form.querySelector(`#${name}`).addEventListener("input", previewSoon);

editor.classList.add("coloured");
colour();
const fact = preview.querySelector("[data-button]");
button.disabled = Boolean(fact && fact.dataset.fits === "no");
