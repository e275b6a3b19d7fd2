#include "refimpl/tokenizers/split.h"

#include <algorithm>

namespace assay {
namespace {

// A match joins what comes before it, unless that is a match itself.
void merge_forward(const std::vector<Section>& sections, std::vector<Section>& kept) {
  bool previous_match = false;
  for (const Section& section : sections) {
    if (section.match && !previous_match && !kept.empty())
      kept.back().end = section.end;
    else
      kept.push_back(section);
    previous_match = section.match;
  }
}

// The same from the end.
void merge_backward(const std::vector<Section>& sections, std::vector<Section>& kept) {
  bool previous_match = false;
  for (auto section = sections.rbegin(); section != sections.rend(); ++section) {
    if (section->match && !previous_match && !kept.empty())
      kept.back().begin = section->begin;
    else
      kept.push_back(*section);
    previous_match = section->match;
  }
  std::reverse(kept.begin(), kept.end());
}

void join_equals(const std::vector<Section>& sections, std::vector<Section>& kept) {
  bool previous_match = false;
  for (const Section& section : sections) {
    if (section.match == previous_match && !kept.empty())
      kept.back().end = section.end;
    else
      kept.push_back(section);
    previous_match = section.match;
  }
}

}  // namespace

void arrange(const std::vector<Section>& sections, SplitBehavior behavior, std::vector<Section>& kept) {
  kept.clear();
  switch (behavior) {
    case SplitBehavior::removed:
      std::copy_if(sections.begin(), sections.end(), std::back_inserter(kept),
                   [](const Section& section) { return !section.match; });
      break;
    case SplitBehavior::isolated: kept = sections; break;
    case SplitBehavior::merged_with_previous: merge_forward(sections, kept); break;
    case SplitBehavior::merged_with_next: merge_backward(sections, kept); break;
    case SplitBehavior::contiguous: join_equals(sections, kept); break;
  }
}

}  // namespace assay
