"""The page of a laboratory, served on this machine, with a form that takes results."""

from __future__ import annotations

import hashlib
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from urllib.parse import parse_qsl

from deap_vsr.campaign.campaign import Campaign
from deap_vsr.campaign.folder import ASKED, MEASURED
from deap_vsr.campaign.page import page
from deap_vsr.campaign.setup import FILE
from deap_vsr.errors import VsrError

#: Largest form that is taken: a thousand rows of some hundred bytes.
MAX_FORM = 1_000_000
HERE = "127.0.0.1"


class LabServer(ThreadingHTTPServer):
    """A server on the loopback address."""

    daemon_threads = True

    def __init__(self, campaign: Campaign, port: int) -> None:
        super().__init__((HERE, port), _Handler)
        self.campaign = campaign
        self.token = secrets.token_urlsafe(16)  # another page in the same browser does not know it
        self.lock = Lock()


def server(campaign: Campaign, port: int = 0) -> LabServer:
    """Return a server of a campaign's page, on a port of this machine; 0: any that is free."""
    try:
        return LabServer(campaign, port)
    except OSError as error:
        raise VsrError(f"port {port}: cannot be used: {error.strerror}; --port takes another one") from None


class _Handler(BaseHTTPRequestHandler):
    server: LabServer

    def do_GET(self) -> None:
        """Show the page, or say which version of the folder it shows."""
        if not self._is_here():
            return
        if self.path == "/version":
            self._send(200, version(self.server.campaign), "text/plain; charset=utf-8")
        elif self.path == "/":
            self._show()
        else:
            self._send(404, "there is one page here: /", "text/plain; charset=utf-8")

    def do_POST(self) -> None:
        """Take results, or ask for the next sheet."""
        if not self._is_here():
            return
        form = self._form()
        if form is None or not secrets.compare_digest(form.get("token", "").encode(), self.server.token.encode()):
            self._send(403, "this form is not of this page; load the page again", "text/plain; charset=utf-8")
            return
        campaign = self.server.campaign
        with self.server.lock:
            try:
                message = _told(campaign, form) if self.path == "/tell" else ""
                if not campaign.state.open:
                    message = f"{message}\n{_asked(campaign)}"
            except VsrError as error:
                filled = {name: value for name, value in form.items() if name != "token"}
                text = page(campaign, self.server.token, str(error), filled, bad=True)
                self._send(400, text)
                return
        self._show(message)

    def _show(self, message: str = "") -> None:
        with self.server.lock:
            try:
                text, code = page(self.server.campaign, self.server.token, message), 200
            except VsrError as error:  # a file that somebody has edited
                self._send(500, str(error), "text/plain; charset=utf-8")
                return
        self._send(code, text)

    def _is_here(self) -> bool:
        """Whether the page was asked for by the name of this machine: others may not use a browser as a door."""
        host = (self.headers.get("Host") or "").rsplit(":", 1)[0]
        if host in (HERE, "localhost"):
            return True
        self._send(403, f"this page is at http://{HERE}:{self.server.server_port}/", "text/plain; charset=utf-8")
        return False

    def _form(self) -> dict[str, str] | None:
        length = self.headers.get("Content-Length") or ""
        if not length.isdecimal() or int(length) > MAX_FORM:
            return None
        raw = self.rfile.read(int(length))
        try:
            return dict(parse_qsl(raw.decode("utf-8"), keep_blank_values=True, max_num_fields=20_000))
        except ValueError:
            return None

    def _send(self, code: int, text: str, kind: str = "text/html; charset=utf-8") -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: a terminal in a laboratory is for people."""


def version(campaign: Campaign) -> str:
    """Return a text that changes when the folder does."""
    digest = hashlib.sha256()
    for name in (FILE, ASKED, MEASURED):
        path = campaign.folder / name
        digest.update(path.read_bytes() if path.exists() else b"-")
    return digest.hexdigest()


def _told(campaign: Campaign, form: dict[str, str]) -> str:
    """Take what was typed into the form; returns what is to be said of it."""
    names = campaign.setup.names
    rows = []
    for row in campaign.state.open:
        failed = bool(form.get(f"failed-{row.id}"))
        answer = form.get(f"y-{row.id}", "")
        if not failed and not answer.strip():
            continue
        values = {name: form.get(f"x{column}-{row.id}", "") for column, name in enumerate(names)}
        rows.append({"id": row.id, **values, campaign.setup.output: "" if failed else answer, "valid": int(not failed),
                     "comment": form.get(f"comment-{row.id}", "")})  # fmt: skip
    if not rows:
        return "nothing was typed; rows without an answer stay open"
    told = campaign.tell(rows)
    return "\n".join([f"{told.taken} rows taken", *told.notes])


def _asked(campaign: Campaign) -> str:
    sheet = campaign.ask()
    return f"sheet {sheet.number}: {len(sheet)} rows" if len(sheet) else sheet.reason
