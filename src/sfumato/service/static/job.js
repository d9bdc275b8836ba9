// The page of a question that runs: it is loaded again when the question has ended. Without this script, a button does.

const job = document.querySelector("[data-job]");

async function look() {
  try {
    const answer = await fetch(job.dataset.job);
    if (answer.ok && !["waiting", "running"].includes((await answer.json()).stage)) return location.reload();
  } catch {
    // the service cannot be reached now: look again later
  }
  setTimeout(look, 2000);
}

setTimeout(look, 1000);
