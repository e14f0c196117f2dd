"""`python -m tests.model_server --port 0`: serve until killed; prints {"port": N} as one line."""

from __future__ import annotations

import argparse
import json
import signal
import sys

from tests.model_server.server import ModelServer


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.model_server", description="A scripted model server.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before every answer")
    arguments = parser.parse_args()
    server = ModelServer((arguments.host, arguments.port), latency=arguments.latency)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.stdout.write(json.dumps({"port": server.server_address[1]}) + "\n")
    sys.stdout.flush()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


if __name__ == "__main__":
    main()
