"""What a browser with the page open sends, so that tests can send something else in its place."""

import json

import httpx2


class Visitor:
    """A visitor of the page of a running service, who need not behave."""

    def __init__(self, url, session):
        self.client = httpx2.Client(base_url=url, timeout=120)
        self.session = session
        config = self.client.get("/config").json()
        self._components = {each["id"]: each for each in config["components"]}
        self._events = {each["api_name"]: each for each in config["dependencies"]}
        self.run = self._events["run"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()

    def event(self, name):
        """The number of an event."""
        return self._events[name]["id"]

    def upload(self, name, content):
        """The answer to the upload of one file."""
        return self.client.post("/gradio_api/upload", files={"files": (name, content)})

    def file(self, name, content):
        """A file that was uploaded, as it is named in a request."""
        return self.named(self.upload(name, content).json()[0])

    def named(self, path, **more):
        return {"path": path, "meta": {"_type": "gradio.FileData"}, **more}

    def values(self, **given):
        """What the inputs hold, in their order; some may be given by the first words of their labels."""
        ids = [self._components[number] for number in self.run["inputs"]]
        labels = [each["props"]["label"].split()[0].strip(":").lower() for each in ids]
        return [given.get(label, each["props"].get("value")) for label, each in zip(labels, ids, strict=True)]

    def join(self, data, **more):
        """The answer to a request to run the page's function on these values."""
        body = {"data": data, "fn_index": self.run["id"], "session_hash": self.session, "trigger_id": None}
        return self.client.post("/gradio_api/queue/join", json=body | more)

    def result(self):
        """The outputs of what was joined last."""
        with self.client.stream(
            "GET", "/gradio_api/queue/data", params={"session_hash": self.session}
        ) as stream:
            messages = [json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: ")]
        [done] = [each for each in messages if each["msg"] == "process_completed"]
        return done["output"]["data"]
