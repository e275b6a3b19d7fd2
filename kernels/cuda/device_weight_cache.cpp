#include "kernels/cuda/device_weight_cache.h"

#include <algorithm>
#include <cstring>

#include "core/system/lasting_memory.h"
#include "refimpl/ops/weight_view.h"

namespace assay::cuda {
namespace {

// All bytes, each word multiplied into what was there (FNV-1a by words).
std::uint64_t hash_of(const void* host, std::size_t bytes) {
  constexpr std::uint64_t kPrime = 0x100000001B3ull;
  std::uint64_t hash = 0xCBF29CE484222325ull ^ bytes;
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(host) + at, std::min(sizeof(word), bytes - at));
    hash = (hash ^ word) * kPrime;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

bool DeviceWeightCache::Source::gone() const {
  return lasting != 0 && !still_lasts(lasting);
}

DeviceWeightCache::Source DeviceWeightCache::source_of(const void* host, std::size_t bytes) {
  if (host == nullptr) return {};
  const std::uint64_t lasting = lasting_number(host, bytes);
  return {lasting, lasting != 0 ? 0 : hash_of(host, bytes)};
}

DeviceWeightCache::~DeviceWeightCache() {
  for (const auto& [key, copy] : copies_) blocks_.free(copy.device);
}

void DeviceWeightCache::forget_the_gone() {
  if (returned_ == lasting_memory_returned()) return;
  returned_ = lasting_memory_returned();
  for (auto copy = copies_.begin(); copy != copies_.end();) {
    if (copy->second.codes.gone() || copy->second.scales.gone()) {
      blocks_.free(copy->second.device);
      copy = copies_.erase(copy);
    } else {
      ++copy;
    }
  }
}

template <class Upload>
const void* DeviceWeightCache::find(const Key& key, const Source& codes, const Source& scales,
                                    Upload upload) {
  const std::lock_guard lock(mutex_);
  forget_the_gone();
  Copy& copy = copies_[key];
  if (copy.device != nullptr && copy.codes == codes && copy.scales == scales) return copy.device;
  if (copy.device != nullptr) blocks_.free(copy.device);
  copy = {};
  copy.device = upload();
  copy.codes = codes;
  copy.scales = scales;
  return copy.device;
}

const void* DeviceWeightCache::of_bytes(const void* host, std::size_t bytes) {
  return find({.codes = host, .bytes = bytes, .what = {}}, source_of(host, bytes), {}, [&] {
    void* block = blocks_.allocate(bytes);
    blocks_.upload(block, host, bytes);
    return block;
  });
}

template <class Make>
const void* DeviceWeightCache::of_weight(const WeightView& weight, const std::string& what, Make make) {
  if (weight.codes == nullptr) return nullptr;
  const std::size_t bytes = weight.rows * weight.row_bytes;
  return find({weight.codes, weight.scales, bytes, weight.first_row, what}, source_of(weight.codes, bytes),
              source_of(weight.scales, scale_bytes(weight)), make);
}

const void* DeviceWeightCache::of_made(const WeightView& weight, const std::string& what,
                                       const std::function<std::vector<std::byte>()>& make) {
  return of_weight(weight, what, [&] {
    const std::vector<std::byte> made = make();
    void* block = blocks_.allocate(made.size());
    blocks_.upload(block, made.data(), made.size());
    return block;
  });
}

const void* DeviceWeightCache::of_filled(const WeightView& weight, const std::string& what, std::size_t bytes,
                                         const std::function<void(void*)>& fill) {
  return of_weight(weight, what, [&] {
    void* block = blocks_.allocate(bytes);
    fill(block);
    return block;
  });
}

}  // namespace assay::cuda
