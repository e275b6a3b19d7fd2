// What is kept of things that have sizes, where they may have so many bytes together: those used last.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <unordered_map>

namespace assay {

class LruBytes {
 public:
  explicit LruBytes(std::uint64_t most) : most_(most) {}

  bool has(const std::string& name) const { return places_.contains(name); }
  std::uint64_t bytes() const { return bytes_; }
  std::size_t size() const { return places_.size(); }

  // It was used now.
  void touch(const std::string& name) {
    if (const auto place = places_.find(name); place != places_.end())
      order_.splice(order_.end(), order_, place->second);
  }
  // Makes room, telling what goes, and takes it in. False: it is larger than all the room, and nothing went. What
  // `spared` says yes to goes only where nothing else is left.
  bool add(const std::string& name, std::uint64_t bytes,
           const std::function<void(const std::string&)>& gone = {},
           const std::function<bool(const std::string&)>& spared = {}) {
    if (bytes > most_) return false;
    erase(name);
    for (const bool sparing : {true, false}) {
      for (auto entry = order_.begin(); entry != order_.end() && bytes > most_ - bytes_;) {
        const std::string old = entry++->name;
        if (sparing && spared && spared(old)) continue;
        erase(old);
        if (gone) gone(old);
      }
    }
    order_.push_back({name, bytes});
    places_[name] = std::prev(order_.end());
    bytes_ += bytes;
    return true;
  }
  void erase(const std::string& name) {
    const auto place = places_.find(name);
    if (place == places_.end()) return;
    bytes_ -= place->second->bytes;
    order_.erase(place->second);
    places_.erase(place);
  }

 private:
  struct Entry {
    std::string name;
    std::uint64_t bytes;
  };
  std::uint64_t most_, bytes_ = 0;
  std::list<Entry> order_;  // used longest ago first
  std::unordered_map<std::string, std::list<Entry>::iterator> places_;
};

}  // namespace assay
