// Copies on the device of what neither changes nor goes away on the host: weights, and what is made of them.
//
// A copy is known by where its source lies, how long it is, and what was made of it. That is a promise, and
// who breaks it (a model freed, another mapped to the same place) is found out: some words of the source are
// remembered with the copy, and where they differ it is made anew. Single bytes changed elsewhere, in a model
// that is in use, are not seen.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace assay {
struct WeightView;
}

namespace assay::cuda {

// Memory of a device.
class DeviceBlocks {
 public:
  virtual ~DeviceBlocks() = default;
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void upload(void* to, const void* host, std::size_t bytes) = 0;
  // After what uses it.
  virtual void free(void* block) = 0;
};

class DeviceWeightCache {
 public:
  explicit DeviceWeightCache(DeviceBlocks& blocks) : blocks_(blocks) {}
  DeviceWeightCache(const DeviceWeightCache&) = delete;
  DeviceWeightCache& operator=(const DeviceWeightCache&) = delete;
  ~DeviceWeightCache();

  const void* of_bytes(const void* host, std::size_t bytes);
  // Of Staging::made_of(); null where the weight's bytes are not at hand to be known by.
  const void* of_made(const WeightView& weight, const std::string& what,
                      const std::function<std::vector<std::byte>()>& make);

 private:
  struct Key {
    const void *codes = nullptr, *scales = nullptr;
    std::size_t bytes = 0, first_row = 0;
    std::string what;  // empty: the bytes themselves
    auto operator<=>(const Key&) const = default;
  };
  struct Copy {
    void* device = nullptr;
    std::uint64_t mark = 0;
  };
  template <class Upload>
  const void* find(const Key& key, std::uint64_t mark, Upload upload);

  DeviceBlocks& blocks_;
  std::mutex mutex_;
  std::map<Key, Copy> copies_;
};

}  // namespace assay::cuda
