"""Schemas, and values made for them, for the makers and checkers of JSON schema fixtures."""
import json
import random

SCHEMAS = [
    {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0, "maximum": 130}, "email": {"type": "string", "pattern": "^[a-z]{1,5}@[a-z]{1,5}\\.(com|org)$"}}, "required": ["name", "age"], "additionalProperties": False},
    {"type": "object", "properties": {"location": {"type": "string", "minLength": 1, "maxLength": 6}, "unit": {"enum": ["celsius", "fahrenheit"]}}, "required": ["location"]},
    {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer", "exclusiveMinimum": 0}, "tags": {"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 2}}, "required": ["id", "tags"]}, "minItems": 1, "maxItems": 2},
    {"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"value": {"type": "number", "minimum": -1, "maximum": 1}, "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}}, "required": ["value", "next"]}}},
    {"oneOf": [{"type": "object", "properties": {"kind": {"const": "circle"}, "radius": {"type": "number", "exclusiveMinimum": 0}}, "required": ["kind", "radius"]}, {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "integer", "minimum": 1, "maximum": 1000}}, "required": ["kind", "side"]}]},
    {"type": "array", "prefixItems": [{"type": "string", "maxLength": 2}, {"type": "integer"}, {"type": "boolean"}], "items": {"type": "null"}, "minItems": 2, "maxItems": 5},
    {"type": "object", "properties": {"a": {"type": "integer"}, "ab": {"type": "string"}}, "additionalProperties": {"type": "boolean"}},
    {"type": "object", "required": ["x"], "additionalProperties": {"type": ["integer", "null"]}},
    {"enum": [1, "one", None, [1, {"a": "b\"c"}], 1.5, False]},
    {"type": ["string", "integer", "null"], "minLength": 2, "maxLength": 3, "minimum": -5, "maximum": 205},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "date-time"},
    {"type": "string", "format": "time"},
    {"type": "string", "format": "uuid"},
    {"type": "string", "format": "ipv4"},
    {"type": "string", "pattern": "^(\\([0-9]{3}\\))?[0-9]{3}-[0-9]{4}$"},
    {"type": "string", "pattern": "[\"\\\\]x?"},
    {"type": "number", "exclusiveMinimum": -3, "exclusiveMaximum": 4},
    {"type": "integer", "exclusiveMinimum": 99, "maximum": 1001},
    {"anyOf": [{"type": "boolean"}, {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}]},
]


class Maker:
    """Values of a schema, in the order of its properties; sometimes beside it."""

    def __init__(self, root: dict, rng: random.Random, strays: float):
        self.root, self.rng, self.strays = root, rng, strays

    def anything(self, depth: int = 0):
        r = self.rng
        kinds = [lambda: r.randrange(-9, 210), lambda: r.choice(["", "x", "ab", "abc", "é\"", "2026-02-30", "1.2.3.4"]), lambda: None,
                 lambda: r.random() < 0.5, lambda: round(r.uniform(-5, 5), 3)]
        if depth < 2:
            kinds += [lambda: [self.anything(depth + 1) for _ in range(r.randrange(3))],
                      lambda: {k: self.anything(depth + 1) for k in r.sample(["a", "ab", "x", "kind", "zz"], r.randrange(3))}]
        return r.choice(kinds)()

    def value(self, schema, depth: int = 0):
        r = self.rng
        if schema is True or not schema or r.random() < self.strays:
            return self.anything(depth)
        if "$ref" in schema:
            at = self.root
            for part in schema["$ref"].split("/")[1:]:
                at = at[part]
            return self.value(at, depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return r.choice(schema["enum"])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self.value(schema[key][0] if depth > 3 else r.choice(schema[key]), depth + 1)
        kind = schema.get("type", "object")
        return getattr(self, r.choice(kind) if isinstance(kind, list) else kind)(schema, depth)

    def object(self, s, depth):
        names = s.get("properties", {})
        out = {n: self.value(v, depth + 1) for n, v in names.items() if n in s.get("required", []) or self.rng.random() < 0.5}
        free = s.get("additionalProperties", False)
        for n in s.get("required", []):
            if n not in out and self.rng.random() > self.strays:
                out[n] = self.value(free if isinstance(free, dict) else True, depth + 1)
        if isinstance(free, dict):
            for n in self.rng.sample(["", "aa", "abc", "b", "é"], self.rng.randrange(3)):
                if n not in names:
                    out[n] = self.value(free, depth + 1)
        return out

    def array(self, s, depth):
        prefix, rest = s.get("prefixItems", []), s.get("items", True)
        count = self.rng.randrange(s.get("minItems", 0), min(s.get("maxItems", 3), 6) + 1)
        if self.rng.random() < self.strays:
            count += self.rng.choice([-1, 1])
        return [self.value(prefix[i] if i < len(prefix) else rest, depth + 1) for i in range(count)]

    def string(self, s, _):
        r = self.rng
        if "format" in s:
            day = f"{r.randrange(1000, 9999)}-{r.randrange(1, 13):02}-{r.randrange(1, 29):02}"
            time = f"{r.randrange(24):02}:{r.randrange(60):02}:{r.randrange(60):02}{r.choice(['', '.5'])}{r.choice(['Z', '+01:30', '-11:00'])}"
            return {"date": day, "time": time, "date-time": f"{day}T{time}", "ipv4": ".".join(str(r.randrange(256)) for _ in range(4)),
                    "uuid": "-".join("".join(r.choice("0123456789abcdef") for _ in range(n)) for n in (8, 4, 4, 4, 12))}[s["format"]]
        if "pattern" in s:
            return r.choice(["ab@cd.com", "a@b.org", "555-1234", "(012)555-1234", "x\"", "\\", "a\\x", "a@b.net", "555-12345", "plain"])
        return "".join(r.choice("abé語😀\"\\\n ") for _ in range(r.randrange(s.get("minLength", 0), s.get("maxLength", 5) + 1)))

    def bounds(self, s):
        low = s.get("minimum", s.get("exclusiveMinimum", -20))
        return low, s.get("maximum", s.get("exclusiveMaximum", low + 40))

    def integer(self, s, _):
        low, high = self.bounds(s)
        return self.rng.choice([low, high, self.rng.randrange(low, high + 1), self.rng.randrange(low, high + 1)])

    def number(self, s, _):
        low, high = self.bounds(s)
        return self.rng.choice([low, high, round(self.rng.uniform(low, high), 3), round(self.rng.uniform(low, high), 1)])

    def boolean(self, *_):
        return self.rng.random() < 0.5

    def null(self, *_):
        return None


def dumped(rng: random.Random, value) -> str:
    """As JSON, in one of the ways that people write it."""
    style = rng.randrange(3)
    if style == 0:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return json.dumps(value, ensure_ascii=style == 1, indent=None if style == 1 else rng.choice([1, 2, 4]))
