// A form whose part of the page follows what is typed. Without this script, the part is shown when the form is sent.

for (const form of document.querySelectorAll("form[data-live]")) {
  const target = document.getElementById(form.dataset.into);
  let waiting = 0;
  let running = null;

  async function show() {
    running?.abort();
    running = new AbortController();
    const body = new URLSearchParams(new FormData(form));
    try {
      const answer = await fetch(form.dataset.live, { method: "POST", body, signal: running.signal });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      target.replaceChildren(...page.body.childNodes);
    } catch (error) {
      if (error.name !== "AbortError") target.textContent = "The service cannot be reached.";
    }
  }

  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(show, 300);
  });
}
