// The widths of published models, to name those that a server may have behind it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace assay {

struct PublishedSize {
  std::string_view model;
  std::uint64_t hidden_size = 0;
  std::uint64_t vocabulary = 0;  // 0: its config leaves it to the class
  double soft_cap = 0;           // of the final logits; 0: none
};
std::span<const PublishedSize> published_sizes();

}  // namespace assay
