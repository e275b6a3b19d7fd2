"""Writes data/fixtures/jinja/language.json and chats.json: what jinja2 makes of templates, as transformers sets it up
(transformers.utils.chat_template_utils), and how it makes prompts of conversations.

    python data/make_jinja_fixtures.py
    python data/make_jinja_fixtures.py --templates FOLDER OUT.json

language.json: data/jinja/language.py, a construct each. chats.json: data/jinja/conversations.py under the templates of
data/jinja/templates, which are written for this purpose in the manner of well-known families. An error is kept as the name of
its class. The clock stands at 2026-02-03 04:05:06.

The second form renders the same conversations from real templates, every *.jinja below FOLDER. With ASSAY_CHAT_TEMPLATES=OUT.json
the test ChatTemplate.RealTemplates holds ours against them.
"""

import argparse
import copy
import datetime
import json
import sys
import warnings
from pathlib import Path

import transformers.utils.chat_template_utils as utils

DATA = Path(__file__).parent
sys.path.insert(0, str(DATA / "jinja"))
from conversations import conversations  # noqa: E402
from language import ROWS, V  # noqa: E402


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 2, 3, 4, 5, 6)


def attempt(render):
    try:
        text = render()
        text.encode()
        return text
    except Exception as error:
        return {"error": type(error).__name__}


def language():
    rows = []
    for construct, templates in ROWS.items():
        for template in filter(None, templates):
            result = attempt(lambda: utils._compile_jinja_template(template).render(**copy.deepcopy(V)))
            assert isinstance(result, dict) or " at 0x" not in result, f"writes an address: {template}"
            rows.append([construct, template, result])
    return {"variables": V, "rows": rows}


def prompt(template, chat):
    """As apply_chat_template: members that are None go."""
    request = copy.deepcopy(chat)
    request["messages"] = [{k: v for k, v in message.items() if v is not None} for message in request["messages"]]
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    return attempt(lambda: utils.render_jinja_template(conversations=[request.pop("messages")], chat_template=template, **{**tokens, **request})[0][0])


def chats(templates):
    all_chats = conversations()
    return {"chats": all_chats, "templates": [{"name": name, "template": text, "prompts": [prompt(text, chat) for chat in all_chats]}
                                              for name, text in templates.items()]}


def written(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


def templates_below(folder):
    return {str(file.relative_to(folder)): file.read_text(encoding="utf-8") for file in sorted(Path(folder).rglob("*.jinja*"))}


def main():
    warnings.simplefilter("ignore")
    utils.datetime = FixedClock
    parser = argparse.ArgumentParser()
    parser.add_argument("--templates", nargs=2, metavar=("FOLDER", "OUT"))
    given = parser.parse_args().templates
    if given:
        written(Path(given[1]), chats(templates_below(given[0])))
        return
    written(DATA / "fixtures" / "jinja" / "language.json", language())
    written(DATA / "fixtures" / "jinja" / "chats.json", chats(templates_below(DATA / "jinja" / "templates")))


if __name__ == "__main__":
    main()
