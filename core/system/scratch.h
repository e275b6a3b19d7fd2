// Room for a loop's intermediate values that is asked for again and again: kept, and not cleared, between two
// uses.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay {

template <class Element>
class Scratch {
 public:
  // What it holds is whatever was there.
  std::span<Element> take(std::size_t count) {
    if (elements_.size() < count) elements_ = std::vector<Element>(count);
    return std::span(elements_).first(count);
  }

 private:
  std::vector<Element> elements_;
};

}  // namespace assay
