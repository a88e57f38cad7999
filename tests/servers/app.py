"""An application of the shapes that no server of the registry speaks, for uvicorn."""

import csv
import io
import json
import os

import joblib
import pandas as pd

from tests.remote.servers import COLUMNS

MODEL = joblib.load(os.environ["LIMI_SAVED"])


def score(frame):
    return MODEL.predict_proba(frame[COLUMNS])[:, 1].tolist()


def answer(path, body):
    """The type and the body of an answer; None where there is no such place."""
    if path == "/ready":
        return "text/plain", "yes"
    if path == "/v1/models/credit:predict":
        scores = score(pd.DataFrame(json.loads(body)["instances"]))
        return "application/json", json.dumps({"predictions": scores})
    if path == "/csv":
        frame = pd.DataFrame(list(csv.reader(io.StringIO(body.decode()))), columns=COLUMNS)
        frame = frame.astype({"age": int, "hours": int, "wealth": float})
        return "text/csv", "\n".join(map(repr, score(frame)))
    return None


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    given = answer(scope["path"], body)
    kind, content = given or ("text/plain", "no such place")
    head = [(b"content-type", kind.encode())]
    status = 200 if given else 404
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": content.encode()})
