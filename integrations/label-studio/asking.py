"""Asks valora about the pictures of Label Studio's tasks."""

import base64
import contextlib
import json
import math
import mimetypes
import threading
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass

PICTURE_LIMIT = 64 << 20  # bytes


class AskError(Exception):
    """A picture that cannot be read, or a question that valora did not answer."""


def _fetch(request, what, timeout=300):
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            data = answer.read(PICTURE_LIMIT + 1)
            if len(data) > PICTURE_LIMIT:
                raise AskError(f"{what} has more than {PICTURE_LIMIT >> 20} MiB")
            return data, answer.headers.get_content_type()
    except urllib.error.HTTPError as error:
        text = error.read(4096).decode(errors="replace")
        with contextlib.suppress(ValueError, KeyError, TypeError):
            text = json.loads(text)["error"]["message"]
        failure = AskError(f"{what}: {error.code} {text}")
        failure.status = error.code
        raise failure from None
    except OSError as error:
        raise AskError(f"{what}: {error}") from None


@dataclass
class LabelStudio:
    """The application, for pictures that were uploaded to it: its address and a user's token."""

    url: str = ""
    token: str = ""

    def picture(self, address):
        """The picture as a data URL. Only requests to Label Studio itself carry the token."""
        if address.startswith("data:"):
            return address
        if address.startswith("/"):
            if not self.url:
                raise AskError(f"{address} lies in Label Studio: start with --label-studio-url "
                               "and $LABEL_STUDIO_API_KEY")
            address = self.url.rstrip("/") + address
        if not address.startswith(("http://", "https://")):
            raise AskError(f"{address[:80]}: pictures must be http, https or data URLs, "
                           "or lie in Label Studio")
        request = urllib.request.Request(address)
        if self.token and self.url and _origin(address) == _origin(self.url):
            # Storages are reached by redirections, which must not carry it.
            request.add_unredirected_header("Authorization", f"Token {self.token}")
        data, kind = _fetch(request, address)
        if not kind.startswith("image/"):
            kind = mimetypes.guess_type(urllib.parse.urlsplit(address).path)[0] or "image/png"
        return f"data:{kind};base64," + base64.b64encode(data).decode()


def _origin(address):
    parts = urllib.parse.urlsplit(address)
    return parts.scheme, parts.hostname, parts.port


@dataclass
class Terms:
    """How a control is asked: the labels of its model's task ([]: it takes any), the question."""

    own: list
    question: str


class Valora:
    """A server, and which of its models answer which controls."""

    def __init__(self, url, key="", model=None, prompt=None, max_tokens=1024):
        self.url, self.key, self.prompt, self.max_tokens = url.rstrip("/"), key, prompt, max_tokens
        self.model = model
        self._lock = threading.Lock()
        self._without_labels = set()  # models that refuse labels next to boxes

    def _request(self, path, body=None):
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        data = None if body is None else json.dumps(body).encode()
        answer, _ = _fetch(urllib.request.Request(self.url + path, data, headers), "valora")
        return json.loads(answer)

    def model_of(self, control):
        """The name that answers a control: its own, else the option's, else the base model."""
        if control.model or self.model:
            return control.model or self.model
        with self._lock:
            if self.model is None:
                self.model = self._request("/models")["data"][0]["id"]
        return self.model

    def card(self, name):
        return self._request("/models/" + urllib.parse.quote(name, safe=""))

    def ready(self):
        self._request("/models")

    def terms(self, control):
        """Asked once for all tasks of a request. AskError if the model does not fit the control."""
        own = self.card(self.model_of(control)).get("labels", [])
        if own and not set(own) & set(control.labels):
            raise AskError(f'"{control.name}" and the model "{self.model_of(control)}" have no '
                           f"label in common: {', '.join(control.labels)} and {', '.join(own)}")
        return Terms(own, self._question(control, own))

    def _question(self, control, own):
        if control.prompt or self.prompt:
            return control.prompt or self.prompt
        model = self.model_of(control)
        described = {card["name"]: card for card in self._request("/lora_adapters")["data"]}
        names = ", ".join(word for word in control.labels if not own or word in own)
        if question := described.get(model, {}).get("question"):
            return question.replace("{label}", names)
        if control.type == "Choices":
            return f"Which of these does the picture show: {names}?"
        return f"Find every {names}."

    def _chat(self, control, picture, question, **extra):
        content = [{"type": "image_url", "image_url": {"url": picture}},
                   {"type": "text", "text": question}]
        body = {"model": self.model_of(control), "max_tokens": self.max_tokens, "temperature": 0,
                "messages": [{"role": "user", "content": content}]}
        return self._request("/chat/completions", body | extra)["choices"][0]

    def _boxes(self, control, picture, terms):
        asked = {"type": "boxes", "confidence": True, "sizes": True}
        question, model = terms.question, self.model_of(control)
        if not terms.own and model not in self._without_labels:
            try:
                labelled = asked | {"labels": list(control.labels)}
                choice = self._chat(control, picture, question, response_format=labelled)
                return json.loads(choice["message"]["content"])
            except AskError as error:
                # Families that write boxes between special tokens take no labels.
                if getattr(error, "status", None) != 400:
                    raise
        choice = self._chat(control, picture, question, response_format=asked)
        if not terms.own:
            self._without_labels.add(model)
        return json.loads(choice["message"]["content"])

    def rectangles(self, control, terms, task, picture):
        """The regions of a RectangleLabels. Boxes with labels that it lacks are left out; boxes
        without labels have its only one."""
        answer = self._boxes(control, picture, terms)
        regions = []
        for index, box in enumerate(answer["boxes"]):
            label = control.labels.get(box["label"])
            if box["label"] is None:
                if len(control.stored) > 1:
                    raise AskError(f'the boxes of "{self.model_of(control)}" have no labels, '
                                   f'and "{control.name}" has more than one')
                label = control.stored[0]
            if label is not None:
                score = box["confidence"] * box.get("label_confidence", 1)
                regions.append(control.rectangle(task, index, box["box"], label, score,
                                                 answer["size"]))
        return regions

    def _chosen(self, control, terms, picture):
        """(label, probability) pairs."""
        if terms.own:
            form = {"type": "labels", "confidence": True}
            choice = self._chat(control, picture, terms.question, response_format=form)
            answer = json.loads(choice["message"]["content"])
            if "labels" in answer:
                return list(zip(answer["labels"], answer["confidences"]))
            return [(answer["label"], answer["confidence"])]
        choice = self._chat(control, picture, terms.question, logprobs=True,
                            structured_outputs={"choice": list(control.labels)})
        sum_of = sum(token["logprob"] for token in choice["logprobs"]["content"])
        return [(choice["message"]["content"], math.exp(sum_of))]

    def choices(self, control, terms, task, picture):
        """The region of a Choices, or none if the model's label is none of its."""
        chosen = [(control.labels[label], score)
                  for label, score in self._chosen(control, terms, picture)
                  if label in control.labels]
        if not chosen:
            return []
        value = {"choices": list(dict.fromkeys(label for label, _ in chosen))}
        return [control.region(task, 0, value, min(score for _, score in chosen))]
