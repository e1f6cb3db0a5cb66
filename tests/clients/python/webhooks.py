"""A receiver of webhooks that takes what the library of Standard Webhooks verifies, and nothing else.

It prints its port, and ends with its standard input. The path of a delivery names a secret.
"""

import http.server
import os
import sys
import threading

from standardwebhooks import Webhook, WebhookVerificationError


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        secret = os.environ[self.path.strip("/")]
        try:
            event = Webhook(secret).verify(body, dict(self.headers))
            status = 204 if event == {"type": "wallet.low"} else 500
        except WebhookVerificationError:
            status = 401
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
