"""Asks `assay serve` through the `openai` package, as programs written for it do.

    pip install openai
    python data/check_openai_client.py build/release/cli/assay [MODEL]

Without MODEL: tinylm, beside which a chat template is put. Says OK, or stops at the first answer that is not as the
package or OpenAI's description of it has it.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import openai

ROOT = Path(__file__).parent.parent
TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def chatty_tinylm(folder):
    source = ROOT / "data" / "tinylm"
    for file in source.iterdir():
        if file.name != "tokenizer_config.json":
            (folder / file.name).symlink_to(file)
    config = json.loads((source / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(config | {"chat_template": TEMPLATE}))
    return folder


def check_completions(client, model):
    plain = client.completions.create(model=model, prompt="The river", max_tokens=12, seed=3, logprobs=2)
    choice = plain.choices[0]
    assert len(choice.logprobs.tokens) == plain.usage.completion_tokens == 12
    assert "".join(choice.logprobs.tokens) == choice.text, choice
    parts = client.completions.create(model=model, prompt="The river", max_tokens=12, seed=3, stream=True)
    assert "".join(part.choices[0].text for part in parts) == choice.text
    several = client.completions.create(
        model=model, prompt=["The river", "A small"], n=2, max_tokens=4, temperature=0.8, top_p=0.9, stop=["\n"],
        presence_penalty=0.5, frequency_penalty=0.5, logit_bias={"44": -100}, user="someone", best_of=2)
    assert [each.index for each in several.choices] == [0, 1, 2, 3]
    echoed = client.completions.create(model=model, prompt=[54, 259, 223], max_tokens=0, echo=True, logprobs=1)
    assert echoed.choices[0].logprobs.token_logprobs[0] is None
    assert len(echoed.choices[0].logprobs.tokens) == 3 and echoed.usage.completion_tokens == 0


def check_chat(client, model):
    messages = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "The river?"}]
    plain = client.chat.completions.create(
        model=model, messages=messages, max_completion_tokens=12, seed=1, logprobs=True, top_logprobs=3)
    choice = plain.choices[0]
    assert choice.message.role == "assistant" and choice.finish_reason in ("stop", "length")
    assert all(len(token.top_logprobs) == 3 for token in choice.logprobs.content)
    spoken = b"".join(bytes(token.bytes) for token in choice.logprobs.content)
    assert spoken.decode() == choice.message.content
    text, usage = "", None
    for part in client.chat.completions.create(
            model=model, messages=messages, max_completion_tokens=12, seed=1, stream=True,
            stream_options={"include_usage": True}):
        usage = part.usage or usage
        for each in part.choices:
            text += each.delta.content or ""
    assert text == choice.message.content
    assert usage.total_tokens == plain.usage.total_tokens
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    client.chat.completions.create(
        model=model, messages=messages, tools=[tool], tool_choice="auto", parallel_tool_calls=True, max_tokens=2)


def check_forms(client, model):
    schema = {"type": "object", "properties": {"b": {"type": "boolean"}, "a": {"enum": ["x", "y"]}},
              "required": ["b", "a"], "additionalProperties": False}
    said = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": "Data"}], max_tokens=80,
        response_format={"type": "json_schema", "json_schema": {"name": "d", "schema": schema, "strict": True}})
    made = json.loads(said.choices[0].message.content)
    assert list(made) == ["b", "a"] and isinstance(made["b"], bool) and made["a"] in "xy"
    free = client.completions.create(
        model=model, prompt="Say", max_tokens=8, extra_body={"grammar": 'root ::= "yes" | "no"', "min_p": 0.1})
    assert free.choices[0].text in ("yes", "no")


def check_refusals(client, model):
    def refused(kind, **request):
        try:
            client.completions.create(**({"model": model, "prompt": "a", "max_tokens": 1} | request))
        except kind as error:
            return error
        raise AssertionError(f"not refused: {request}")

    assert refused(openai.BadRequestError, temperature=9).param == "temperature"
    assert refused(openai.BadRequestError, suffix="b").param == "suffix"
    assert refused(openai.BadRequestError, extra_body={"mirostat": 1}).param == "mirostat"
    assert refused(openai.NotFoundError, model="gpt-4").code == "model_not_found"
    assert [each.id for each in client.models.list()] == [model]
    assert client.models.retrieve(model).id == model


async def check_many(url, model):
    client = openai.AsyncOpenAI(base_url=url, api_key="-")

    async def ask(seed):
        said = await client.completions.create(model=model, prompt="Once", max_tokens=20, seed=seed)
        return said.choices[0].text

    alone = [await ask(seed) for seed in range(16)]
    assert await asyncio.gather(*(ask(seed) for seed in range(16))) == alone


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "tinylm"
        folder.mkdir()
        model = Path(sys.argv[2]) if len(sys.argv) > 2 else chatty_tinylm(folder)
        server = subprocess.Popen([sys.argv[1], "serve", model, "--port", "0"], stdout=subprocess.PIPE, text=True)
        try:
            url = server.stdout.readline().split()[-1] + "/v1"
            client = openai.OpenAI(base_url=url, api_key="-", max_retries=0)
            name = client.models.list().data[0].id
            check_completions(client, name)
            check_chat(client, name)
            check_forms(client, name)
            check_refusals(client, name)
            asyncio.run(check_many(url, name))
        finally:
            server.terminate()
            assert server.wait(30) == 130
    print("OK: openai", openai.__version__)


if __name__ == "__main__":
    main()
