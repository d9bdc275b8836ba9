"""A real Chromium that tests can start, kill and start again with the same profile, and web servers on loopback."""

import os
import shutil
import signal
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CLIENT = Path(__file__).parents[2] / "clients" / "js"
BUNDLE = CLIENT.parents[1] / "src" / "sfumato" / "service" / "static" / "sfumato-survey.js"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
MISSING = "Chromium is missing. Install it (on Debian: apt-get install chromium); these tests drive a real browser."
OPTIONS = (
    "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-port=0",
    "--host-resolver-rules=MAP insecure.test 127.0.0.1",
)  # fmt: skip


def find_chromium():
    found = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    assert found, MISSING
    return found


class Chromium:
    """One browser process group with its own profile. `kill` is SIGKILL of all of it: nothing is written at the end."""

    def __init__(self, playwright, profile):
        self._playwright, self._profile = playwright, Path(profile)
        self.start()

    def start(self):
        port_file = self._profile / "DevToolsActivePort"
        port_file.unlink(missing_ok=True)
        root = ("--no-sandbox",) if os.geteuid() == 0 else ()
        self._process = subprocess.Popen(
            [find_chromium(), *OPTIONS, *root, f"--user-data-dir={self._profile}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while not port_file.exists() or not port_file.read_text().strip():
            assert self._process.poll() is None, "Chromium ended at its start"
            assert time.monotonic() < deadline, "Chromium did not start within a minute"
            time.sleep(0.05)
        port = port_file.read_text().split()[0]
        self._browser = self._playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")
        self.context = self._browser.contexts[0]
        self.context.set_default_timeout(60_000)

    def tab(self, address):
        page = self.context.new_page()
        page.goto(address)
        return page

    def kill(self):
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def restart(self):
        for name in ("SingletonLock", "SingletonCookie", "SingletonSocket"):
            (self._profile / name).unlink(missing_ok=True)
        self.start()


class Site:
    """A web server on loopback: pages and the client's source on GET; POSTs are recorded and answered as told."""

    def __init__(self, documents=None):
        self.documents = dict(documents or {})
        self.posted = []  # (path, headers, body)
        self.answer = (204, {})
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                path = self.path.split("?")[0]
                self._reply(*site._find(path))

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                site.posted.append((self.path, dict(self.headers.items()), body.decode()))
                status, headers = site.answer
                self._reply(status, headers, b"")

            def _reply(self, status, headers, body):
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _find(self, path):
        if path in self.documents:
            return 200, {"Content-Type": "application/json"}, self.documents[path]
        file = BUNDLE if path == "/dist/sfumato-survey.js" else CLIENT / path.lstrip("/")
        if path.startswith(("/src/", "/examples/", "/dist/")) and file.is_file():
            return (
                200,
                {"Content-Type": f"text/{'html' if file.suffix == '.html' else 'javascript'}"},
                file.read_bytes(),
            )
        if path == "/worker.js":
            return 200, {"Content-Type": "text/javascript"}, WORKER
        return 200, {"Content-Type": "text/html", "Set-Cookie": "session=secret"}, PAGE

    def at(self, path="/", host="localhost"):
        return f"http://{host}:{self.port}{path}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()


PAGE = b"""<!doctype html><title>test</title><script type="module">
import * as client from "/src/index.js";
window.client = client;
window.load = async (name) => client.Survey.load(new Uint8Array(await (await fetch(name)).arrayBuffer()));
window.code = (work) => work().then(() => null, (error) => error.code ?? String(error));
window.ready = true;
</script>"""

WORKER = b"""import { Survey } from "/src/index.js";
onmessage = async ({ data: [name, value] }) => {
  const survey = await Survey.load(new Uint8Array(await (await fetch(name)).arrayBuffer()));
  postMessage(await survey.report(value));
};"""
