#!/usr/bin/env python3
"""Whether texts that `assay run --json-schema` writes hold their schema, as the package jsonschema says.

    pip install jsonschema rfc3339-validator
    data/check_json_schema.py ASSAY MODEL [SEEDS]

Every schema of schema_cases.py, SEEDS (10) seeds, temperatures from 0.7 to 3. A text that came to its end has to parse and
hold; one that -n cut short is counted. The exit code is 1 where one does not.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

from schema_cases import SCHEMAS


def main() -> int:
    assay, model, seeds = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 10
    whole = cut = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "schema.json"
        for schema in SCHEMAS:
            file.write_text(json.dumps(schema))
            check = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
            for seed in range(seeds):
                options = ["-p", "A", "-n", "200", "--temperature", str(0.7 + seed % 4 * 0.75), "--seed", str(seed)]
                out = subprocess.run([assay, "run", model, *options, "--json-schema", str(file), "--json", "-"], capture_output=True, text=True)
                if out.returncode != 0:
                    print("FAILED", json.dumps(schema), out.stderr)
                    return 1
                made = json.loads(out.stdout)
                if made["sequences"][0]["finish_reason"] != "stop":
                    cut += 1
                    continue
                try:
                    holds = check.is_valid(json.loads(made["text"]))
                except json.JSONDecodeError:
                    holds = False
                whole += 1
                if not holds:
                    wrong += 1
                    print("WRONG", json.dumps(schema), repr(made["text"]))
    print(f"{whole} texts hold their schema, {cut} were cut short, {wrong} are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
