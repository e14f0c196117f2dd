"""A scripted, OpenAI-compatible model server on loopback: real HTTP, no network, no model.

    with running() as server:                         # threads of this process; `spawned()` for a process of its own
        server.script("scripted-7", ["status:500", "honest"])
        ... call server.base_url with model "scripted-7" ...
        assert len(server.calls("scripted-7")) == 2

What the server does is chosen by the model name, so tests that run at once do not meet. Names nobody scripted answer
honestly. The behaviours are listed in `behaviours`.
"""

from tests.model_server.control import Control, running, spawned

__all__ = ["Control", "running", "spawned"]
