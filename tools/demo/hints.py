"""Commands to try while the demo's server runs. Each works as it is pasted, from any folder."""

import json
import shlex

TEXT = """
Ask for yourself: at {url}/ in a browser, or in another terminal:

{ask}; echo

Streamed:

{stream}

What is served, and figures:

curl -s {url}/v1/models; echo
curl -s {url}/metrics

With the openai package, which needs a virtual environment (Debian's own Python takes no packages from pip):

python3 -m venv ~/openai-venv && ~/openai-venv/bin/pip install --quiet openai
~/openai-venv/bin/python - <<'END'
import base64, openai
image = base64.b64encode(open({path}, "rb").read()).decode()
client = openai.OpenAI(base_url="{url}/v1", api_key="none")
for chunk in client.chat.completions.create(model={model}, stream=True, messages=[{{"role": "user", "content": [
        {{"type": "image_url", "image_url": {{"url": "data:image/png;base64," + image}}}},
        {{"type": "text", "text": {question}}}]}}]):
    print(chunk.choices[0].delta.content or "", end="", flush=True)
print()
END"""


def curl(url, body, *options):
    return shlex.join(["curl", "-s", *options, f"{url}/v1/chat/completions", "-H", "Content-Type: application/json", "-d", json.dumps(body)])


def hints(url, demo):
    """demo: the folder with samples.json."""
    samples = json.loads((demo / "samples.json").read_text())
    sample = next(s for s in samples if s["adapter"] and s["modality"] == "image")
    path = demo / sample["media"]
    content = [{"type": "image_url", "image_url": {"url": path.as_uri()}}, {"type": "text", "text": sample["question"]}]
    body = {"model": sample["task"], "messages": [{"role": "user", "content": content}]}
    return TEXT.format(url=url, ask=curl(url, body), stream=curl(url, body | {"stream": True}, "-N"), path=json.dumps(str(path)),
                       model=json.dumps(sample["task"]), question=json.dumps(sample["question"]))
