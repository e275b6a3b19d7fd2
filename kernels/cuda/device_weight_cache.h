// Copies on the device of what neither changes nor goes away on the host: weights, and what is made of them.
//
// A copy is known by where its source lies, how long it is, what was made of it, and which bytes lay there: by the
// number of the mapped file (core/system/lasting_memory.h), so that another file at the same address is another
// source; in other memory, as tests and planted faults have it, by a hash of all bytes, computed at every call. What was
// copied of a file goes when the file is no longer mapped.
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
  // Of Staging::filled_of(), alike.
  const void* of_filled(const WeightView& weight, const std::string& what, std::size_t bytes,
                        const std::function<void(void*)>& fill);

 private:
  struct Key {
    const void *codes = nullptr, *scales = nullptr;
    std::size_t bytes = 0, first_row = 0;
    std::string what;  // empty: the bytes themselves
    auto operator<=>(const Key&) const = default;
  };
  // Which bytes they are: the number of the memory that lasts, or, where it is 0, a hash of them.
  struct Source {
    std::uint64_t lasting = 0, hash = 0;
    bool operator==(const Source&) const = default;
    bool gone() const;
  };
  static Source source_of(const void* host, std::size_t bytes);
  struct Copy {
    void* device = nullptr;
    Source codes, scales;
  };
  template <class Make>
  const void* of_weight(const WeightView& weight, const std::string& what, Make make);
  template <class Upload>
  const void* find(const Key& key, const Source& codes, const Source& scales, Upload upload);
  void forget_the_gone();

  DeviceBlocks& blocks_;
  std::mutex mutex_;
  std::map<Key, Copy> copies_;
  std::uint64_t returned_ = 0;  // lasting_memory_returned() when the gone were last forgotten
};

}  // namespace assay::cuda
