// Which of a manifest's entries has a name: places in their list, by the names' hashes. The names stay where they
// are, so that a list of a million costs eight bytes a name.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/formats/checksum_manifest.h"

namespace assay {

class ManifestNameIndex {
 public:
  // The place of an entry of that name; `next` becomes the place where there is none.
  std::optional<std::size_t> find_or_add(std::string_view name, const std::vector<ManifestEntry>& entries,
                                         std::size_t next) {
    if (2 * (count_ + 1) > slots_.size()) grow(entries);
    std::size_t slot = slot_of(name);
    for (; slots_[slot] != kFree; slot = (slot + 1) % slots_.size()) {
      if (entries[slots_[slot]].name == name) return slots_[slot];
    }
    slots_[slot] = static_cast<std::uint32_t>(next);
    ++count_;
    return std::nullopt;
  }

 private:
  static constexpr std::uint32_t kFree = ~std::uint32_t{0};
  static constexpr std::size_t kFirstSlots = 1024;

  std::size_t slot_of(std::string_view name) const {
    return std::hash<std::string_view>()(name) % slots_.size();
  }
  void grow(const std::vector<ManifestEntry>& entries) {
    std::vector<std::uint32_t> places;
    std::swap(places, slots_);
    slots_.assign(std::max(kFirstSlots, 2 * places.size()), kFree);
    for (const std::uint32_t place : places) {
      if (place == kFree) continue;
      std::size_t slot = slot_of(entries[place].name);
      while (slots_[slot] != kFree) slot = (slot + 1) % slots_.size();
      slots_[slot] = place;
    }
  }

  std::vector<std::uint32_t> slots_;  // half of them free, or more
  std::size_t count_ = 0;
};

}  // namespace assay
