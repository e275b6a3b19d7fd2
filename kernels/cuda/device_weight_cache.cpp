#include "kernels/cuda/device_weight_cache.h"

#include <algorithm>
#include <cstring>

#include "refimpl/ops/weight_view.h"

namespace assay::cuda {
namespace {

// Eight words, from the first byte to the last, each multiplied into what was there (FNV-1a by words).
std::uint64_t mark_of(const void* host, std::size_t bytes) {
  constexpr std::size_t kWords = 8;
  constexpr std::uint64_t kPrime = 0x100000001B3ull;
  std::uint64_t mark = 0xCBF29CE484222325ull;
  const std::size_t width = std::min(sizeof(std::uint64_t), bytes);
  for (std::size_t i = 0; i < kWords && bytes != 0; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(host) + (bytes - width) * i / (kWords - 1), width);
    mark = (mark ^ word) * kPrime;
    mark ^= mark >> 29;
  }
  return mark;
}

}  // namespace

DeviceWeightCache::~DeviceWeightCache() {
  for (const auto& [key, copy] : copies_) blocks_.free(copy.device);
}

template <class Upload>
const void* DeviceWeightCache::find(const Key& key, std::uint64_t mark, Upload upload) {
  const std::lock_guard lock(mutex_);
  Copy& copy = copies_[key];
  if (copy.device != nullptr && copy.mark == mark) return copy.device;
  if (copy.device != nullptr) blocks_.free(copy.device);
  copy = {};
  copy.device = upload();
  copy.mark = mark;
  return copy.device;
}

const void* DeviceWeightCache::of_bytes(const void* host, std::size_t bytes) {
  return find({.codes = host, .bytes = bytes, .what = {}}, mark_of(host, bytes), [&] {
    void* block = blocks_.allocate(bytes);
    blocks_.upload(block, host, bytes);
    return block;
  });
}

const void* DeviceWeightCache::of_made(const WeightView& weight, const std::string& what,
                                       const std::function<std::vector<std::byte>()>& make) {
  if (weight.codes == nullptr) return nullptr;
  const std::size_t bytes = weight.rows * weight.row_bytes;
  std::uint64_t mark = mark_of(weight.codes, bytes);
  if (weight.scales != nullptr) mark ^= mark_of(weight.scales, sizeof(float));
  return find({weight.codes, weight.scales, bytes, weight.first_row, what}, mark, [&] {
    const std::vector<std::byte> made = make();
    void* block = blocks_.allocate(made.size());
    blocks_.upload(block, made.data(), made.size());
    return block;
  });
}

}  // namespace assay::cuda
