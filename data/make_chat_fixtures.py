"""Writes data/fixtures/chat/EXPECTED.json: chat prompts as transformers' Jinja renders them, from templates that hold the
literals of the models' own, without tools.

    python data/make_chat_fixtures.py
"""

import json
from pathlib import Path

from transformers.utils.chat_template_utils import render_jinja_template

FOLDER = Path(__file__).parent / "fixtures" / "chat"


def each(body, before="", after=""):
    return before + "{% for message in messages %}" + body + "{% endfor %}{% if add_generation_prompt %}" + after + "{% endif %}"


def roles(**text):
    keys = iter(text.items())
    name, body = next(keys)
    result = "{% if message['role'] == '" + name + "' %}" + body
    for name, body in keys:
        result += "{% elif message['role'] == '" + name + "' %}" + body
    return result + "{% endif %}"


LLAMA3 = ("{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}")
IM = "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
TEMPLATES = {
    "chatml": each(IM, after="{{ '<|im_start|>assistant\\n' }}"),
    "qwen2.5": each(IM, "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. "
                    "You are a helpful assistant.<|im_end|>\\n' }}{% endif %}", "{{ '<|im_start|>assistant\\n' }}"),
    "llama2": "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system = messages[0]['content'] %}"
              "{% else %}{% set rest = messages %}{% set system = false %}{% endif %}{% for message in rest %}"
              "{% if loop.index0 == 0 and system != false %}{% set content = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + "
              "message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}"
              "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
              "{% else %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}",
    "llama3": each(LLAMA3, "{{ bos_token }}", "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"),
    "llama3.1": "{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content']|trim %}{% set rest = messages[1:] %}"
                "{% else %}{% set system = '' %}{% set rest = messages %}{% endif %}{{ bos_token }}"
                "{{ '<|start_header_id|>system<|end_header_id|>\\n\\n' }}{{ 'Cutting Knowledge Date: December 2023\\n' }}"
                "{{ 'Today Date: 26 Jul 2024\\n\\n' }}{{ system }}{{ '<|eot_id|>' }}{% for message in rest %}" + LLAMA3 +
                "{% endfor %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}",
    "mistral_v1": each(roles(user="{{ '[INST] ' + message['content'] + ' [/INST]' }}",
                             assistant="{{ message['content'] + eos_token }}"), "{{ bos_token }}"),
    "mistral_v3": each(roles(user='{{ "[INST] " + message["content"] + "[/INST]" }}',
                             assistant='{{ " " + message["content"] + eos_token }}'), "{{ bos_token }}"),
    "gemma": each("{% if message['role'] == 'assistant' %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}"
                  "{% endif %}{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}",
                  "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
                  "{% endif %}", "{{ '<start_of_turn>model\\n' }}"),
    "phi3": each("{{ '<|' + message['role'] + '|>\\n' + message['content'] + '<|end|>\\n' }}", after="{{ '<|assistant|>\\n' }}"),
    "deepseek_v2": each(roles(user="{{ 'User: ' + message['content'] + '\\n\\n' }}",
                              assistant="{{ 'Assistant: ' + message['content'] + eos_token }}",
                              system="{{ message['content'] + '\\n\\n' }}"), "{{ bos_token }}", "{{ 'Assistant:' }}"),
    "deepseek_v3": each(roles(user="{{ '<｜User｜>' + message['content'] }}",
                              assistant="{{ '<｜Assistant｜>' + message['content'] + '<｜end▁of▁sentence｜>' }}",
                              system="{{ message['content'] }}"), "{{ bos_token }}", "{{ '<｜Assistant｜>' }}"),
    "zephyr": each("\n" + roles(user="\n{{ '<|user|>\\n' + message['content'] + eos_token }}\n",
                                system="\n{{ '<|system|>\\n' + message['content'] + eos_token }}\n",
                                assistant="\n{{ '<|assistant|>\\n' + message['content'] + eos_token }}\n") +
                   "\n{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n"),
}
USER = {"role": "user", "content": " Hi there "}
SYSTEM = {"role": "system", "content": "Be brief."}
MORE = [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Why?\nTell."}]
CHATS = [[USER], [USER, *MORE], [SYSTEM, USER], [SYSTEM, USER, *MORE]]
NO_SYSTEM = {"gemma", "mistral_v1", "mistral_v3"}


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    results = []
    for name, template in TEMPLATES.items():
        chats = [chat for chat in CHATS if chat[0]["role"] == "user" or name not in NO_SYSTEM]
        texts, _ = render_jinja_template(conversations=chats, chat_template=template, add_generation_prompt=True,
                                         bos_token="<s>", eos_token="</s>")
        results.append({"name": name, "template": template,
                        "prompts": [{"messages": chat, "text": text} for chat, text in zip(chats, texts)]})
    (FOLDER / "EXPECTED.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
