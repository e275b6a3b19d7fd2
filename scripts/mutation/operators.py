"""What a mutant may change: one token, or one statement."""

SWAPPED = {
    "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["*"], "<<": [">>"], ">>": ["<<"], "&": ["|"], "|": ["&"],
    "^": ["|"], "<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"], "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"],
}
ASSIGNED = {
    "+=": ["-=", "="], "-=": ["+=", "="], "*=": ["/=", "="], "/=": ["*=", "="], "|=": ["&="], "&=": ["|="], "^=": ["|="],
    "<<=": [">>="], ">>=": ["<<="],
}
_PAIRS = [
    ("min", "max"), ("Min", "Max"), ("fminf", "fmaxf"), ("floor", "ceil"), ("cos", "sin"), ("Add", "Sub"),
    ("front", "back"), ("any_of", "all_of"), ("lower_bound", "upper_bound"), ("true", "false"), ("rows", "columns"),
    ("ShiftLeft", "ShiftRight"), ("LowerHalf", "UpperHalf"),
]
NAMES = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
NAMES |= {"Mul": "Add", "MulAdd": "NegMulAdd", "NegMulAdd": "MulAdd", "none_of": "any_of"}


def of_number(text):
    """One more and one less; of a real number one part in a hundred more."""
    lower = text.lower()
    hexadecimal = lower.startswith("0x")
    real = "p" in lower if hexadecimal else "." in lower or "e" in lower
    if real:
        factor = "1.01F" if lower.endswith("f") and not hexadecimal else "1.01"
        zero = not any(c in "123456789" for c in lower.split("e")[0])
        return [f"({text} + {factor})" if zero else f"({text} * {factor})"]
    if lower.rstrip("ul").strip("0") == "" or lower.rstrip("ul") == "0x0":
        return [f"({text} + 1)"]
    return [f"({text} + 1)", f"({text} - 1)"]
