// Cutting words at matches: what every pre-tokenizer does in the end.
#pragma once

#include <cstddef>
#include <vector>

#include "refimpl/tokenizers/pre_tokenizer.h"

namespace assay {

// A word as matches and what lies between them, in order, covering it.
struct Section {
  std::size_t begin = 0, end = 0;
  bool match = false;
};

// Groups sections as `behavior` says; `kept` gets [begin, end) of what becomes a word.
void arrange(const std::vector<Section>& sections, SplitBehavior behavior, std::vector<Section>& kept);

// Cuts every word: find(word, sections) tells the sections of one.
template <class Find>
void cut_words(Words& words, SplitBehavior behavior, Find find) {
  std::vector<Words::Span> cut;
  cut.reserve(words.spans.size());
  std::vector<Section> sections, kept;
  for (const Words::Span& span : words.spans) {
    sections.clear();
    find(words.of(span), sections);
    const bool as_they_are = behavior == SplitBehavior::isolated;
    if (!as_they_are) arrange(sections, behavior, kept);
    for (const Section& section : as_they_are ? sections : kept) {
      if (section.begin == section.end) continue;
      cut.push_back({span.begin + static_cast<std::uint32_t>(section.begin),
                     span.begin + static_cast<std::uint32_t>(section.end), span.first && section.begin == 0});
    }
  }
  words.spans = std::move(cut);
}

}  // namespace assay
