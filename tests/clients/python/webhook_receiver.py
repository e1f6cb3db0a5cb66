"""A receiver of webhooks that prints each event that the library of Standard Webhooks verifies.

It prints its port, reads the secret from the first line of its standard input, and ends with that input.
"""

import http.server
import json
import sys
import threading

from standardwebhooks import Webhook

secret = None
has_secret = threading.Event()


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        has_secret.wait()
        # One that is not verified ends the connection without an answer.
        event = Webhook(secret).verify(body, dict(self.headers))
        print(json.dumps({"id": self.headers["webhook-id"], "event": event}), flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
server.daemon_threads = True
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
secret = sys.stdin.readline().strip()
has_secret.set()
sys.stdin.read()
