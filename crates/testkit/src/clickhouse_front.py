"""The HTTP interface of ClickHouse in front of its embedded engine (Python package chdb-core), for tests.

clickhouse_front.py PORT DIR CUT [TLS_PORT CERTIFICATE]. CUT > 0: each insert of that number is stored, and its connection ends without an answer.
Settings in the URL apply to inserts, as on a server. Users are not checked.
"""

import re
import socket
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from chdb import session

PORT, DIR, CUT = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
ENGINE = session.Session(DIR + "/data")
LOCK = threading.Lock()
INSERT = re.compile(r"\s*(INSERT\s+INTO\s.*?)\s+FORMAT\s+(\w+)\s*$", re.I | re.S)
inserts = 0


def literal(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        global inserts
        body = self.rfile.read(int(self.headers["Content-Length"]))
        settings = dict(parse_qsl(urlsplit(self.path).query))
        database, query = settings.pop("database", "default"), settings.pop("query", None)
        # A parameter of the HTTP interface, no setting. Here, all answers come at the end.
        settings.pop("wait_end_of_query", None)
        query = query if query is not None else body.decode()
        insert = INSERT.match(query)
        with LOCK:
            try:
                ENGINE.query(f"USE `{database}`")
                if not insert:
                    answer = ENGINE.query(query).bytes()
                else:
                    inserts += 1
                    answer = self.insert(insert, settings, body)
            except Exception as error:
                text = str(error)
                code = re.search(r"Code: (\d+)", text)
                code = code[1] if code else "0"
                return self.answer(404 if code in ("60", "81") else 500, text.encode(), code)
        if insert and CUT and inserts % CUT == 0:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.answer(200, answer)

    def insert(self, insert, settings, body):
        path = DIR + "/rows"
        with open(path, "wb") as file:
            file.write(body)
        packed = " COMPRESSION 'gzip'" if self.headers.get("Content-Encoding") == "gzip" else ""
        words = ", ".join(f"{name} = {literal(value)}" for name, value in settings.items())
        words = f" SETTINGS {words}" if words else ""
        return ENGINE.query(f"{insert[1]} FROM INFILE {literal(path)}{packed}{words} FORMAT {insert[2]}").bytes()

    def answer(self, status, body, code=None):
        self.send_response(status)
        if code:
            self.send_header("X-ClickHouse-Exception-Code", code)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        # A chunk of no bytes ends the answer.
        for part in (body, b"") if body else (b"",):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))

    def log_message(self, *_):
        pass


if len(sys.argv) > 4:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[5])
    encrypted = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[4])), Handler)
    encrypted.socket = context.wrap_socket(encrypted.socket, server_side=True)
    threading.Thread(target=encrypted.serve_forever, daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
