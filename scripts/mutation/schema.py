"""Mutant schemata (Untch, Offutt and Harrold 1993): a source that is all of its mutants at once.

An expression e with the mutants e1 and e2 becomes

    (assay_mutant(17)
     ? (e1) : assay_mutant(18)
     ? (e2) : (e))

and a statement s that a mutant drops { if (!assay_mutant(19)) s }. Which one lives is told at run time, so that a file is
compiled once for all of them. Every mutant begins a line of its own: what the compiler says of that line is said of it.
"""

import hashlib
import re
from dataclasses import dataclass

from .cpp import ASSIGNMENTS, OPENING, function_bodies
from .operators import ASSIGNED, NAMES, SWAPPED, of_number

MARK = re.compile(r"/\*m(\d+)\*/")
TYPES = {"const", "auto", "static", "constexpr", "unsigned", "typename", "thread_local", "inline", "alignas"}
SKIPPED = {"using", "typedef", "static_assert", "template", "struct", "class", "enum", "goto", "asm", "union"}
NOT_DROPPED = (".reserve(", "(void)", "HWY_ASSERT", "HWY_DASSERT", "assert(", ".shrink_to_fit(", "throw Error::internal")


@dataclass
class Mutant:
    key: str  # survives edits elsewhere in the file
    path: str
    line: int
    what: str  # "* -> /: x * factor"
    number: int = 0  # at run time; 0: not chosen


class Schema:
    """Finds the mutants of a source; with `chosen` ({key: number}) writes the source that holds those."""

    def __init__(self, source, chosen=None):
        self.source, self.chosen, self.mutants, self._seen = source, chosen or {}, [], {}
        self._edits, self._lines = [], source.text.split("\n")
        bodies, constants = function_bodies(source)
        for first, last in bodies:
            self._edits.append((first, last, self.statements(first, last)))
        if str(source.path).endswith(".cpp"):
            for first, last in constants:
                self._constant(first, last)

    def text(self):
        """(the source with its mutants, {line: numbers of the mutants that what is said of the line is said of})"""
        source, out, at = self.source, [], 0
        for first, last, text in sorted(self._edits):
            if first == last:
                continue
            begin, end = source.tokens[first].start, source.tokens[last - 1].end
            out += [source.text[at:begin], text]
            at = end
        whole = "".join([*out, source.text[at:]])
        lines, constant = {}, 0
        for number, line in enumerate(whole.split("\n"), 1):
            found = MARK.match(line)
            if found:
                lines[number] = (int(found[1]),)
                if constant:
                    lines[constant] += lines[number]
            elif "(assay_mutant_now(" not in line:
                constant = 0
            elif not constant:
                constant = number  # where a constant is declared: no longer one, by any of its mutants
                lines[constant] = ()
        return whole, lines

    # ------------------------------------------------------------------------------------------------- mutants

    def _mutant(self, token, what):
        """Its number where it is chosen, else None."""
        line = self.source.tokens[token].line
        text = self._lines[line - 1].strip()
        base = f"{self.source.path}|{text}|{what}"
        again = self._seen[base] = self._seen.get(base, 0) + 1
        key = hashlib.sha256(f"{base}|{again}".encode()).hexdigest()[:12]
        number = self.chosen.get(key, 0)
        self.mutants.append(Mutant(key, str(self.source.path), line, what, number))
        return number or None

    def _choice(self, alternatives, original, call="assay_mutant", truth=False):
        """alternatives: [(token, what, text)]; truth: what converts to bool only where it is asked to."""
        out = original
        for token, what, text in reversed(alternatives):
            number = self._mutant(token, what)
            if number and text is not None:
                out = f"static_cast<bool>({out})" if truth else out
                out = f"({call}({number})\n/*m{number}*/ ? ({text})\n: ({out}))"
        return out

    # ---------------------------------------------------------------------------------------------- statements

    def statements(self, first, last):
        source, tokens, out, i = self.source, self.source.tokens, [], first
        at = tokens[first].start if first < last else 0
        while i < last:
            out.append(source.text[at : tokens[i].start])
            i, text = self._statement(i, last)
            out.append(text)
            at = tokens[i - 1].end
        return "".join(out)

    def _verbatim(self, first, last):
        return self.source.text[self.source.tokens[first].start : self.source.tokens[last - 1].end] if first < last else ""

    def _gap(self, i):
        """What lies between token i - 1 and token i."""
        return self.source.text[self.source.tokens[i - 1].end : self.source.tokens[i].start]

    def _statement(self, i, last):
        """(the place behind it, its text)"""
        source, tokens = self.source, self.source.tokens
        token = tokens[i]
        if token.kind == "directive" or token.text == ";":
            return i + 1, self._verbatim(i, i + 1)
        if token.text == "{":
            end = source.match[i]
            inner = self.statements(i + 1, end)
            return end + 1, "{" + self._gap(i + 1) + inner + (self._gap(end) if end > i + 1 else "") + "}"
        if token.text in ("if", "while", "for", "switch"):
            return self._headed(i, last)
        if token.text == "do":
            behind, body = self._statement(i + 1, last)
            end = source.find(behind, last, {";"})
            return end + 1, "do " + body + " " + self._verbatim(behind, end + 1)
        if token.text == "[" and tokens[i + 1].text == "[":  # an attribute: [[fallthrough]], [[likely]]
            end = source.match[i]
            return end + 1, self._verbatim(i, end + 1)
        if token.text in ("case", "default"):
            end = source.find(i, last, {":"})
            return end + 1, self._verbatim(i, end + 1)
        end = source.find(i, last, {";"})
        if token.text in ("try", "else"):
            return i + 1, self._verbatim(i, i + 1)
        if token.text == "catch":
            end = source.match[i + 1]
            return end + 1, self._verbatim(i, end + 1)
        if end is None:
            return last, self._verbatim(i, last)
        if token.text in SKIPPED:
            return end + 1, self._verbatim(i, end + 1)
        return end + 1, self._simple(i, end)

    def _headed(self, i, last):
        source, tokens = self.source, self.source.tokens
        keyword, opening = tokens[i].text, i + 1
        fixed = tokens[opening].text == "constexpr"
        opening += 1 if fixed else 0
        closing = source.match[opening]
        inner = (opening + 1, closing)
        if fixed:
            head = self._verbatim(*inner)
        elif keyword == "for":
            head = self._for_head(*inner)
        elif keyword == "switch" or source.find(*inner, {";", "="}) is not None:
            pieces = source.split(*inner, ";")
            head = "; ".join(self._declaration(*p) if p[0] < p[1] else "" for p in pieces)
        else:
            head = self.condition(*inner, negate=keyword == "if")
        behind, body = self._statement(closing + 1, last)
        text = f"{self._verbatim(i, opening)} ({head}){self._gap(closing + 1)}{body}"
        if keyword == "if" and behind < last and tokens[behind].text == "else":
            gap, after = self._gap(behind), self._gap(behind + 1)
            behind, other = self._statement(behind + 1, last)
            text += f"{gap}else{after}{other}"
        return behind, text

    def _for_head(self, first, last):
        source = self.source
        pieces = source.split(first, last, ";")
        if len(pieces) == 3:
            begin, test, step = pieces
            parts = [self._declaration(*begin) if begin[0] < begin[1] else "",
                     self.condition(*test, negate=False) if test[0] < test[1] else "",
                     self.expression(*step) if step[0] < step[1] else ""]
            return "; ".join(parts)
        colon = source.find(first, last, {":"})
        if colon is None:
            return self._verbatim(first, last)
        return f"{self._verbatim(first, colon)} : {self.expression(colon + 1, last)}"

    def _simple(self, i, end):
        """A statement that a semicolon ends, at `end`."""
        source, tokens = self.source, self.source.tokens
        token, plain = tokens[i], source.plain(i, end)
        if plain is None:
            return self._verbatim(i, end + 1)
        if token.text == "return":
            return f"return {self.expression(i + 1, end)};" if end > i + 1 else "return;"
        if token.text in ("break", "continue"):
            return self._dropped(i, plain, plain + ";")
        if token.text == "throw":
            return self._dropped(i, plain, self._verbatim(i, end + 1))
        if self._declares(i, end):
            return self._declaration(i, end, True) + ";"
        return self._dropped(i, plain, self.expression(i, end) + ";")

    def _dropped(self, i, plain, text):
        if any(word in plain for word in NOT_DROPPED):
            return text
        number = self._mutant(i, f"dropped: {plain[:80]}")
        return f"{{ if (!assay_mutant({number}))\n/*m{number}*/ {text} }}" if number else text

    def _declares(self, i, end):
        """Does the statement begin with a type and a name?"""
        tokens = self.source.tokens
        if tokens[i].text in TYPES:
            return True
        j, depth = i, 0
        while j < end:
            text = tokens[j].text
            tight = j + 1 < end and tokens[j + 1].start == tokens[j].end
            if text == "<" and (tight or depth):
                depth += 1
            elif text in (">", ">>") and depth:
                depth -= len(text)
            elif depth == 0 and tokens[j].kind not in ("word",) and text not in ("::", "*", "&", "&&"):
                return False
            elif depth == 0 and tokens[j].kind == "word" and j > i:
                before = tokens[j - 1]
                if before.kind == "word" or before.text in (">", ">>"):
                    return True
                if before.text in ("*", "&", "&&"):
                    return not self.source.spaced(j - 1)
            j += 1
        return False

    def _declaration(self, first, last, whole=False):
        """Names with what they begin with: only that changes."""
        source, tokens = self.source, self.source.tokens
        if not self._declares(first, last):
            return self.expression(first, last)
        equals = source.find(first, last, {"="})
        if equals is None:
            return self._brackets(first, last, sizes=True)
        fixed = any(tokens[i].text == "constexpr" for i in range(first, equals))
        if fixed:
            return self._scalar_constant(first, last, equals) or self._verbatim(first, last)
        pieces = source.split(equals + 1, last)
        out = [self._verbatim(first, equals + 1) + " " + self.expression(*pieces[0])]
        for begin, end in pieces[1:]:
            equals = source.find(begin, end, {"="})
            out.append(self._brackets(begin, end, sizes=True) if equals is None
                       else self._verbatim(begin, equals + 1) + " " + self.expression(equals + 1, end))
        return ", ".join(out)

    def _scalar_constant(self, first, last, equals):
        """constexpr T k = e, which becomes const so that a mutant may be another number."""
        source, tokens = self.source, self.source.tokens
        head = self._verbatim(first, equals)
        if any(t.text == "," for t in (tokens[i] for i in source.at_depth_zero(equals + 1, last))):
            return None
        if "[" in head or "array" in head or "view" in head or tokens[equals + 1].text == "{":
            return None
        text = self._leaf(equals + 1, last, "assay_mutant_now")
        if "assay_mutant_now" not in text:
            return None
        return f"{head.replace('constexpr', 'const', 1)} = {text}"

    def _constant(self, first, last):
        equals = self.source.find(first, last, {"="})
        if equals is None or not {"constexpr"} & {self.source.tokens[i].text for i in range(first, equals)}:
            return
        text = self._scalar_constant(first, last, equals)
        if text:
            self._edits.append((first, last, text))

    # --------------------------------------------------------------------------------------------- expressions

    def condition(self, first, last, negate):
        text = self.expression(first, last)
        if not negate:
            return text
        plain = self.source.plain(first, last)
        if plain is None:
            return text
        return self._choice([(first, f"negated: {plain[:80]}", f"!({plain})")], text, truth=True)

    def expression(self, first, last):
        """A list of expressions between commas, each with its mutants."""
        pieces = self.source.split(first, last)
        return ", ".join(self._piece(*p) for p in pieces if p[0] < p[1])

    def _piece(self, first, last):
        source, tokens = self.source, self.source.tokens
        assigned = next((i for i in source.at_depth_zero(first, last)
                         if tokens[i].text in ASSIGNMENTS and tokens[i].kind == "mark"), None)
        if assigned is not None and assigned > first:
            target, value = source.plain(first, assigned), source.plain(assigned + 1, last)
            text = f"{self._brackets(first, assigned)} {tokens[assigned].text} {self._piece(assigned + 1, last)}"
            if target is None or value is None:
                return text
            return self._choice([(assigned, f"{tokens[assigned].text} -> {other}: {source.plain(first, last)[:80]}",
                                  f"{target} {other} {value}") for other in ASSIGNED.get(tokens[assigned].text, [])], text)
        question = source.find(first, last, {"?"})
        if question is not None:
            depth = 0
            for i in source.at_depth_zero(question + 1, last):
                depth += 1 if tokens[i].text == "?" else 0
                if tokens[i].text == ":" and tokens[i].kind == "mark":
                    if depth == 0:
                        return (f"{self.condition(first, question, True)} ? {self._piece(question + 1, i)} : "
                                f"{self._piece(i + 1, last)}")
                    depth -= 1
        return self._leaf(first, last)

    def _leaf(self, first, last, call="assay_mutant"):
        """An expression without assignment, comma or choice outside its brackets."""
        source, tokens = self.source, self.source.tokens
        text = self._brackets(first, last)
        plain = source.plain(first, last)
        if plain is None or tokens[first].text == "{":
            return text
        alternatives = []
        for i in source.outside_templates(first, last):
            for other in self._others(i, first):
                changed = self._joined(first, i, other, last)
                alternatives.append((i, f"{tokens[i].text} -> {other or 'nothing'}: {plain[:80]}", changed))
        return self._choice(alternatives, text, call)

    def _joined(self, first, i, other, last):
        before, after = self.source.plain(first, i) or "", self.source.plain(i + 1, last) or ""
        gap = lambda j: " " if first < j < last and self.source.tokens[j].start > self.source.tokens[j - 1].end else ""  # noqa: E731
        return f"{before}{gap(i)}{other}{gap(i + 1)}{after}"

    def _others(self, i, first):
        source, token = self.source, self.source.tokens[i]
        if token.kind == "mark":
            if token.text == "!" and not source.spaced(i):
                return ["!!"]
            before = source.tokens[i - 1] if i > first else None
            unary = before is None or (before.kind == "mark" and before.text not in (")", "]"))
            if token.text == "-" and unary and source.tokens[i + 1].kind != "number":
                return [""]
            return SWAPPED.get(token.text, []) if source.spaced(i) and i > first else []
        if token.kind == "number":
            return of_number(token.text)
        called = token.text in ("true", "false") or i + 1 < len(source.tokens) and source.tokens[i + 1].text in ("(", "<")
        return [NAMES[token.text]] if token.kind == "word" and token.text in NAMES and called else []

    def _brackets(self, first, last, sizes=False):
        """Verbatim, but for what lies in brackets; sizes: a declaration, whose [] hold what the compiler must know."""
        source, tokens, out, i = self.source, self.source.tokens, [], first
        while i < last:
            if i > first:
                out.append(self._gap(i))
            if tokens[i].text not in OPENING or i not in source.match:
                out.append(tokens[i].text)
                i += 1
                continue
            end = source.match[i]
            if tokens[i].text == "[" and self._begins_lambda(i, first):
                i, text = self._lambda(i)
                out.append(text)
                continue
            if sizes and (tokens[i].text == "[" or tokens[i - 1].text == "alignas"):
                out.append(self._verbatim(i, end + 1))
                i = end + 1
                continue
            inner = self.expression(i + 1, end) if source.plain(i + 1, end) is not None or self._holds_lambda(i + 1, end) \
                else self._verbatim(i + 1, end)
            out.append(tokens[i].text + inner + ("" if not inner or not inner.endswith("\n") else " ") + tokens[end].text)
            i = end + 1
        return "".join(out)

    def _holds_lambda(self, first, last):
        return any(self.source.tokens[i].text == "[" for i in range(first, last))

    def _begins_lambda(self, i, first):
        if i == first:
            return True
        before = self.source.tokens[i - 1]
        return before.kind == "mark" and before.text not in (")", "]", "}", ">") or before.text == "return"

    def _lambda(self, i):
        """(the place behind it, its text): statements in its braces, all else verbatim"""
        source, tokens = self.source, self.source.tokens
        j = source.match[i] + 1
        while tokens[j].text != "{":
            j = source.match[j] + 1 if tokens[j].text in OPENING else j + 1
        end = source.match[j]
        inner = self.statements(j + 1, end)
        tail = self._gap(end) if end > j + 1 else ""
        return end + 1, self._verbatim(i, j + 1) + self._gap(j + 1) + inner + tail + "}"
