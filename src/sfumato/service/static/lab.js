// The slider of the lab. Without this script, the button shows the chosen epsilon.

const form = document.querySelector("form[data-slider]");
const slider = form.querySelector("input[type=range]");
const shown = document.getElementById("shown");
const curves = document.getElementById("curves");
let waiting = 0;
let running = null;

form.querySelector("button").hidden = true;

async function show() {
  const epsilon = slider.value;
  curves.src = `/lab/mechanism.svg?epsilon=${epsilon}`;
  for (const field of document.querySelectorAll("[data-epsilon]")) field.value = epsilon;
  running?.abort();
  running = new AbortController();
  try {
    const answer = await fetch(`/lab/mechanism.json?epsilon=${epsilon}`, { signal: running.signal });
    if (!answer.ok) return;
    const facts = await answer.json();
    for (const place of document.querySelectorAll("[data-fact]")) place.textContent = facts[place.dataset.fact];
  } catch (error) {
    if (error.name !== "AbortError") shown.textContent = "unknown: the service cannot be reached";
  }
}

slider.addEventListener("input", () => {
  shown.textContent = slider.value;
  clearTimeout(waiting);
  waiting = setTimeout(show, 120);
});
form.addEventListener("submit", (event) => event.preventDefault());
