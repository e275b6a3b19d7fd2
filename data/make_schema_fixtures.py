#!/usr/bin/env python3
"""Texts and whether they hold a JSON schema, as the package jsonschema says: data/fixtures/grammar/schemas.json.

    pip install jsonschema rfc3339-validator
    python data/make_schema_fixtures.py

A text is [text, holds]: a grammar made of the schema may read only texts that hold it. Those made without strays, in the
order of the properties, it has to read, too: they are "written" (but for keys with escapes, and listed values with spaces).
"""
import importlib.metadata
import json
import pathlib
import random

import jsonschema

from schema_cases import SCHEMAS, Maker, dumped

OUT = pathlib.Path(__file__).parent / "fixtures" / "grammar" / "schemas.json"


def main() -> None:
    rng = random.Random(15)
    cases = []
    for schema in SCHEMAS:
        jsonschema.Draft202012Validator.check_schema(schema)
        check = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        texts, written = {}, set()
        for i in range(60):
            strays = 0 if i < 25 else 0.25
            value = Maker(schema, rng, strays).value(schema)
            text = dumped(rng, value)
            texts[text] = check.is_valid(value)
            compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            apart = '\\u00e9":' in text or ("enum" in schema and text != compact)
            if strays == 0 and texts[text] and not apart:
                written.add(text)
        cases.append({"schema": schema, "texts": sorted(texts.items()), "written": sorted(written)})
        print(json.dumps(schema)[:60], len(texts), "texts,", sum(texts.values()), "hold,", len(written), "written")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    document = {"jsonschema": importlib.metadata.version("jsonschema"), "cases": cases}
    OUT.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
