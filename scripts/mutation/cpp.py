"""C++ as tokens, and what of it can be told from tokens alone: where function bodies are, what their statements are.

The sources are laid out by clang-format, and that is relied upon: a binary operator has white space on both sides, a
unary one, a pointer's `*` and a template's `<` do not.
"""

import re
from dataclasses import dataclass

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<directive>^[ \t]*\#(?:[^\n\\]|\\\n|\\.)*)
      | (?P<string>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
      | (?P<character>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.']|)*)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<mark><<=|>>=|<=>|\.\.\.|->\*|->|::|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[^\s])""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}


@dataclass
class Token:
    kind: str
    text: str
    start: int
    end: int
    line: int


class Source:
    """A file's text and tokens; `match[i]` is the bracket that belongs to bracket i."""

    def __init__(self, path, text):
        self.path, self.text, self.tokens, self.match = path, text, [], {}
        line, last = 1, 0
        for found in TOKEN.finditer(text):
            line += text.count("\n", last, found.start())
            last = found.start()
            kind = next(k for k in ("comment", "directive", "string", "character", "number", "word", "mark") if found[k])
            if kind != "comment":
                self.tokens.append(Token(kind, found[0], found.start(), found.end(), line))
        stack = []
        for index, token in enumerate(self.tokens):
            if token.kind != "mark":
                continue
            if token.text in OPENING:
                stack.append(index)
            elif token.text in CLOSING:
                if not stack or OPENING[self.tokens[stack[-1]].text] != token.text:
                    raise SyntaxError(f"{path}:{token.line}: brackets do not match")
                self.match[stack[-1]] = index
                self.match[index] = stack.pop()

    def plain(self, first, last):
        """Tokens [first, last) as text on one line, without comments; None where a directive lies between."""
        parts = []
        for i in range(first, last):
            if self.tokens[i].kind == "directive" or "\n" in self.tokens[i].text:
                return None
            if i > first and self.tokens[i].start > self.tokens[i - 1].end:
                parts.append(" ")
            parts.append(self.tokens[i].text)
        return "".join(parts)

    def spaced(self, i):
        """White space on both sides: a binary operator."""
        tokens = self.tokens
        return 0 < i < len(tokens) - 1 and tokens[i].start > tokens[i - 1].end and tokens[i + 1].start > tokens[i].end

    def at_depth_zero(self, first, last):
        """Places of [first, last) outside any bracket that opens there; of brackets the opening one."""
        i = first
        while i < last:
            yield i
            i = self.match[i] if self.tokens[i].text in OPENING and i in self.match else i
            i += 1

    def outside_templates(self, first, last):
        """Of those places the ones that are not in a list of template arguments."""
        angles = 0
        for i in self.at_depth_zero(first, last):
            token = self.tokens[i]
            tight = i > 0 and token.start == self.tokens[i - 1].end
            if token.text == "<" and tight:
                angles += 1
            elif token.text in (">", ">>") and tight and angles:
                angles = max(0, angles - len(token.text))
            elif not angles:
                yield i

    def find(self, first, last, texts):
        for i in self.at_depth_zero(first, last):
            if self.tokens[i].kind == "mark" and self.tokens[i].text in texts:
                return i
        return None

    def split(self, first, last, text=","):
        """The ranges between such marks, those between a template's brackets left out."""
        pieces, begin = [], first
        for i in self.outside_templates(first, last):
            if self.tokens[i].kind == "mark" and self.tokens[i].text == text:
                pieces.append((begin, i))
                begin = i + 1
        return [*pieces, (begin, last)]


def function_bodies(source):
    """(first, last) of the tokens between the braces of every function defined at the level of a namespace or class, and
    (first, last) of every declaration of a constant there."""
    bodies, constants = [], []
    _scope(source, 0, len(source.tokens), bodies, constants)
    return bodies, constants


def _scope(source, first, last, bodies, constants):
    tokens, head, i = source.tokens, first, first
    while i < last:
        text = tokens[i].text
        if tokens[i].kind == "directive":
            head = i + 1
        elif text == ";" or (text == ":" and i > head and tokens[i - 1].text in ("public", "private", "protected")):
            if text == ";" and tokens[head].text in ("constexpr", "inline"):
                constants.append((head, i))
            head = i + 1
        elif text in ("(", "["):
            i = source.match[i]
        elif text == "{":
            kind = _kind_of_braces(source, head, i)
            end = source.match[i]
            if kind == "scope":
                _scope(source, i + 1, end, bodies, constants)
            elif kind == "body":
                bodies.append((i + 1, end))
            i = end
            if kind in ("scope", "body"):
                head = i + 1
        i += 1


def _kind_of_braces(source, head, brace):
    words = [source.tokens[i] for i in source.at_depth_zero(head, brace)]
    texts = [w.text for w in words]
    if "namespace" in texts or "extern" in texts and words[-1].kind == "string":
        return "scope"
    if "enum" in texts:
        return "value"
    if "(" not in texts:
        return "scope" if {"class", "struct", "union"} & set(texts) else "value"
    if "=" in texts[: texts.index("(")] and "operator" not in texts:
        return "value"
    members = ":" in texts[texts.index("("):]
    if members and source.tokens[brace - 1].kind == "word" and source.tokens[brace - 1].text not in ("const", "noexcept"):
        return "value"  # a member initialized in braces
    return "body"
