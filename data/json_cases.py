"""JSON of cases, one a line: small, and a change of one case is a change of one line."""

import json


def a_case_a_line(content):
    def compact(value):
        return json.dumps(value, separators=(",", ":"))

    def lines(value):
        return "[\n" + ",\n".join(compact(entry) for entry in value) + "]" if isinstance(value, list) else compact(value)

    if isinstance(content, list):
        return lines(content) + "\n"
    return "{" + ",\n".join(f"{compact(key)}:{lines(value)}" for key, value in content.items()) + "}\n"
