// Values by strings: an open-addressed table, since tokenizers look up every word of every text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "refimpl/tokenizers/string_key.h"

namespace assay {

template <class Value>
class StringTable {
 public:
  std::size_t size() const { return count_; }

  // The first value set for a string counts.
  void add(std::string_view text, const Value& value) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    StringKey key = seed_.key(text);
    Slot& slot = slots_[place(key, text)];
    if (slot.key.length != StringKey::kNone) return;
    if (!key.whole()) {
      key.second = bytes_.size();
      bytes_ += text;
    }
    slot = {key, value};
    ++count_;
  }

  // Null: no such string.
  const Value* find(std::string_view text) const {
    if (count_ == 0) return nullptr;
    const Slot& slot = slots_[place(seed_.key(text), text)];
    return slot.key.length == StringKey::kNone ? nullptr : &slot.value;
  }

 private:
  struct Slot {
    StringKey key;
    Value value = {};
  };

  bool same(const StringKey& held, const StringKey& key, std::string_view text) const {
    if (held.length != key.length || held.first != key.first) return false;
    if (key.whole()) return held.second == key.second;
    return std::memcmp(bytes_.data() + held.second, text.data(), text.size()) == 0;
  }
  // Where `text` is, or the free slot where it would be.
  std::size_t place(const StringKey& key, std::string_view text) const {
    const std::size_t last = slots_.size() - 1;
    std::size_t at = seed_.hash(key) & last;
    while (slots_[at].key.length != StringKey::kNone && !same(slots_[at].key, key, text))
      at = (at + 1) & last;
    return at;
  }
  void grow() {
    const std::vector<Slot> before =
        std::exchange(slots_, std::vector<Slot>(std::max<std::size_t>(64, 2 * slots_.size())));
    for (const Slot& slot : before) {
      if (slot.key.length == StringKey::kNone) continue;
      std::size_t at = seed_.hash(slot.key) & (slots_.size() - 1);
      while (slots_[at].key.length != StringKey::kNone) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  StringSeed seed_;
  std::vector<Slot> slots_;  // a power of two, at least twice what is in it
  std::string bytes_;        // of strings that no key holds whole, one behind the other
  std::size_t count_ = 0;
};

}  // namespace assay
