"""A receiver of OpenTelemetry logs for tests, which decodes requests with OpenTelemetry's own definitions.

otlp_receiver.py PORT FILE: appends each request to FILE as a line of JSON: its path, its headers and its content. The
header X-Answer of a request says how it is answered: `cut` (not at all), `reject N` (except N records), or a status with
a text; only the first request with a text gets that answer.
"""

import gzip
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)

PORT, FILE = int(sys.argv[1]), sys.argv[2]
answered = set()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.headers["Content-Type"] == "application/x-protobuf", self.headers
        assert self.headers["Content-Encoding"] == "gzip", self.headers
        content = MessageToDict(ExportLogsServiceRequest.FromString(gzip.decompress(body)))
        wish = self.headers.get("X-Answer", "")
        is_first = wish not in answered
        answered.add(wish)
        if is_first and wish[:1].isdigit():
            status, _, text = wish.partition(" ")
            return self.answer(int(status), text.encode(), "text/plain")
        with open(FILE, "a") as file:
            line = {"path": self.path, "headers": dict(self.headers), "content": content}
            file.write(json.dumps(line) + "\n")
        if is_first and wish == "cut":
            self.close_connection = True
            return
        answer = ExportLogsServiceResponse()
        answer.partial_success.SetInParent()
        if is_first and wish.startswith("reject "):
            answer.partial_success.rejected_log_records = int(wish[7:])
            answer.partial_success.error_message = "too old"
        self.answer(200, answer.SerializeToString(), "application/x-protobuf")

    def answer(self, status, body, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status == 503:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", PORT), Handler)
server.serve_forever()
