#!/usr/bin/env python3
"""Writes refimpl/fingerprint/published_sizes.cpp: hidden size, vocabulary and soft cap of the published configs.

    data/make_published_sizes.py

Out of data/fixtures/published_configs, which make_published_configs.py writes; a test holds the table to them.
"""
import json
import pathlib

DATA = pathlib.Path(__file__).parent
OUT = DATA.parent / "refimpl" / "fingerprint" / "published_sizes.cpp"


def sizes(path):
    config = json.loads(path.read_text())
    config = config.get("text_config", config)
    hidden = config.get("hidden_size", config.get("n_embd"))
    vocabulary = config.get("vocab_size", config.get("padded_vocab_size", 0))
    return hidden, vocabulary, config.get("final_logit_softcapping") or 0


def main():
    rows = [(path.stem, *sizes(path)) for path in (DATA / "fixtures" / "published_configs").glob("*.json")]
    rows.sort(key=lambda row: (row[1], row[0].lower()))
    lines = "".join(f'      {{"{name}", {hidden}, {vocabulary}, {cap:g}}},\n' for name, hidden, vocabulary, cap in rows)
    OUT.write_text(
        "// Written by data/make_published_sizes.py.\n"
        '#include "refimpl/fingerprint/published_sizes.h"\n\n'
        "#include <array>\n\nnamespace assay {\n\n"
        "std::span<const PublishedSize> published_sizes() {\n"
        f"  static constexpr std::array<PublishedSize, {len(rows)}> kSizes = {{{{\n{lines}  }}}};\n"
        "  return kSizes;\n}\n\n}  // namespace assay\n"
    )


if __name__ == "__main__":
    main()
