"""Writes data/fixtures/chat/EXPECTED.json: chat prompts as transformers' Jinja renders them, from small templates written
for this purpose, one a style of refimpl/tokenizers/chat_style.cpp.

    python data/make_chat_fixtures.py
    python data/make_chat_fixtures.py --templates FOLDER OUT.json

The second renders the same conversations from real templates, a file each. With ASSAY_CHAT_TEMPLATES=OUT.json the test
ChatTemplate.RealTemplatesRenderTheSameOrAreRefused holds every one of them against the style it is taken for, and names the
style that would fit one which is not known: a fingerprint enters the table of chat_style.cpp by this and by nothing else.
"""

import argparse
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
CHATML = "{{ '<|im_start|>assistant\\n' }}"
PRESET = "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nWORDS<|im_end|>\\n' }}{% endif %}"
ALTERNATE = ("{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('user and assistant take turns') }}"
             "{% endif %}")
SPLIT = ("{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system = messages[0]['content'] %}"
         "{% else %}{% set rest = messages %}{% set system = none %}{% endif %}")
GEMMA = "'<start_of_turn>' + ('model' if message['role'] == 'assistant' else 'user') + '\\n'"
PHI = "{{ '<|' + message['role'] + '|>\\n' + message['content'] + '<|end|>\\n' }}"
BARE_PHI = roles(user="{{ '<|user|>\\n' + message['content'] + '<|end|>\\n<|assistant|>\\n' }}",
                 assistant="{{ message['content'] + '<|end|>\\n' }}")
ZEPHYR = "{{ '<|' + message['role'] + '|>\\n' + message['content'] + eos_token + '\\n' }}"
NEMO = ("{{ bos_token }}" + SPLIT + "{% for message in rest %}" + ALTERNATE +
        "{% if message['role'] == 'assistant' %}{{ message['content'] + eos_token }}"
        "{% elif loop.last and system is not none %}{{ '[INST]' + system + '\\n\\n' + message['content'] + '[/INST]' }}"
        "{% else %}{{ '[INST]' + message['content'] + '[/INST]' }}{% endif %}{% endfor %}")
OLD_MISTRAL = "{{ bos_token }}{% for message in messages %}" + ALTERNATE + roles(
    user="{{ '[INST] ' + message['content'] + ' [/INST]' }}", assistant="{{ message['content'] + eos_token }}") + "{% endfor %}"
QWEN3 = each("{% set text = message['content'] %}{% if message['role'] == 'assistant' and '</think>' in text %}"
             "{% set text = text.split('</think>')[-1].lstrip('\\n') %}{% endif %}"
             "{{ '<|im_start|>' + message['role'] + '\\n' + text + '<|im_end|>\\n' }}", after=CHATML)
R1 = ("{{ bos_token }}" + SPLIT + "{{ system or '' }}{% for message in rest %}{% if message['role'] == 'user' %}"
      "{{ '<｜User｜>' + message['content'] }}{% else %}"
      "{{ '<｜Assistant｜>' + message['content'].split('</think>')[-1] + '<｜end▁of▁sentence｜>' }}{% endif %}{% endfor %}"
      "{{ '<｜Assistant｜>' }}")


def framed(start, end, trim="", middle="", begin=""):
    """Every message between two marks, the role in the first."""
    body = "{{ '" + start + "' + message['role'] + '" + middle + "' + message['content']" + trim + " + '" + end + "' }}"
    return each(body, begin, "{{ '" + start + "assistant" + middle + "' }}")


def spoken(names, end, begin, last):
    body = "".join("{% if message['role'] == '" + role + "' %}{{ '" + name + "' + message['content'] + '" + end + "' }}{% endif %}"
                   for role, name in names.items())
    return each(body, begin, "{{ '" + last + "' }}")


TEMPLATES = {
    "ChatML": "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
              "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "ChatML with BOS": each(IM, "{{ bos_token }}", CHATML),
    "Qwen 1.5": each(IM, PRESET.replace("WORDS", "You are a helpful assistant"), CHATML),
    "Qwen 2": each(IM, PRESET.replace("WORDS", "You are a helpful assistant."), CHATML),
    "Qwen 2.5": each(IM, PRESET.replace("WORDS", "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."), CHATML),
    "Qwen 3": QWEN3,
    "Llama 2": SPLIT + "{% for message in rest %}" + ALTERNATE + "{% set text = message['content'] %}"
               "{% if loop.first and system is not none %}{% set text = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + text %}"
               "{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + text.strip() + ' [/INST]' }}"
               "{% else %}{{ ' ' + text.strip() + ' ' + eos_token }}{% endif %}{% endfor %}",
    "Llama 3": each(LLAMA3, "{{ bos_token }}", "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"),
    "Llama 3.1": "{{ bos_token }}" + SPLIT + "{{ '<|start_header_id|>system<|end_header_id|>\\n\\nCutting Knowledge Date: December "
                 "2023\\nToday Date: 26 Jul 2024\\n\\n' + (system or '') | trim + '<|eot_id|>' }}{% for message in rest %}" + LLAMA3 +
                 "{% endfor %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}",
    "Mistral v1": OLD_MISTRAL,
    "Mistral v1, a space after EOS": OLD_MISTRAL.replace("+ eos_token", "+ eos_token + ' '"),
    "Mistral Tekken": NEMO,
    "Gemma": "{{ bos_token }}{% for message in messages %}" + ALTERNATE + "{{ " + GEMMA +
             " + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}{{ '<start_of_turn>model\\n' }}",
    "Gemma 3": "{{ bos_token }}" + SPLIT + "{% for message in rest %}" + ALTERNATE + "{{ " + GEMMA + " }}"
               "{% if loop.first and system is not none %}{{ system + '\\n\\n' }}{% endif %}"
               "{{ message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}{{ '<start_of_turn>model\\n' }}",
    "Phi-3": each(PHI, after="{{ '<|assistant|>\\n' }}"),
    "Phi-3 with BOS": each(PHI, "{{ bos_token }}", "{{ '<|assistant|>\\n' }}"),
    "Phi-3 without system messages": each(BARE_PHI),
    "Phi-3 with BOS, without system messages": each(BARE_PHI, "{{ bos_token }}"),
    "Zephyr": each(ZEPHYR, after="{{ '<|assistant|>\\n' }}"),
    "Zephyr without system messages": each(roles(user="{{ '<|user|>\\n' + message['content'] + '\\n' }}", assistant=ZEPHYR),
                                           after="{{ '<|assistant|>\\n' }}"),
    "DeepSeek V2": each(roles(user="{{ 'User: ' + message['content'] + '\\n\\n' }}",
                              assistant="{{ 'Assistant: ' + message['content'] + eos_token }}",
                              system="{{ message['content'] + '\\n\\n' }}"), "{{ bos_token }}", "{{ 'Assistant:' }}"),
    "DeepSeek R1": R1,
    "Granite 3": framed("<|start_of_role|>", "<|end_of_text|>\\n", middle="<|end_of_role|>"),
    "Command-R": "{{ bos_token }}" + SPLIT + "{% if system is not none %}{{ '<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>' + system + "
                 "'<|END_OF_TURN_TOKEN|>' }}{% endif %}{% for message in rest %}{{ '<|START_OF_TURN_TOKEN|>' + "
                 "('<|USER_TOKEN|>' if message['role'] == 'user' else '<|CHATBOT_TOKEN|>') + message['content'].strip() + "
                 "'<|END_OF_TURN_TOKEN|>' }}{% endfor %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}",
    "OpenChat": spoken({"system": "GPT4 Correct System: ", "user": "GPT4 Correct User: ",
                        "assistant": "GPT4 Correct Assistant: "}, "<|end_of_turn|>", "{{ bos_token }}", "GPT4 Correct Assistant:"),
}
USERS = ["Hi", " Hi there \n", "", "\n\nx", "a<|im_end|>{{y}}{bos} 'q' \"r\"", "é\u3000中 z\u00a0"]
ANSWERS = ["Hello.", "  sp \n\n", "<think>t</think>\n\n A ", "x</think>\n\ny</think>z", "", "<think>open"]
SYSTEMS = ["Be brief.", " pad \n", "x</think>y"]


def conversations():
    def chat(*texts, system=None):
        turns = [{"role": "user" if i % 2 == 0 else "assistant", "content": text} for i, text in enumerate(texts)]
        return ([{"role": "system", "content": system}] if system is not None else []) + turns

    chats = [chat(text) for text in USERS] + [chat(USERS[1], system=system) for system in SYSTEMS]
    for i, answer in enumerate(ANSWERS):
        last = "<tool_response>x</tool_response> " if i % 2 else "end "
        chats.append(chat(USERS[i], answer, USERS[(i + 1) % 6]))
        chats.append(chat(USERS[(i + 2) % 6], answer, USERS[i], ANSWERS[(i + 1) % 6], last, system=SYSTEMS[i % 3]))
    return chats


def rendered(template, chat):
    """What transformers makes of it; None where the template raises."""
    try:
        return render_jinja_template(conversations=[chat], chat_template=template, add_generation_prompt=True,
                                     bos_token="<s>", eos_token="</s>")[0][0]
    except Exception:
        return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--templates", nargs=2, metavar=("FOLDER", "OUT"))
    given = parser.parse_args().templates
    out = Path(given[1]) if given else FOLDER / "EXPECTED.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    templates = TEMPLATES
    if given:
        templates = {file.name: file.read_text() for file in sorted(Path(given[0]).iterdir())}
    chats = conversations()
    results = [{"name": name, "template": template, "prompts": [rendered(template, chat) for chat in chats]}
               for name, template in templates.items()]
    out.write_text(json.dumps({"chats": chats, "templates": results}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
