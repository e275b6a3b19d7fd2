#include "verify/claims/xxh64.h"

#include <algorithm>
#include <bit>

namespace assay {
namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F,
                        kPrime3 = 0x165667B19E3779F9, kPrime4 = 0x85EBCA77C2B2AE63,
                        kPrime5 = 0x27D4EB2F165667C5;

// Little-endian, wherever it runs.
template <typename T>
T load(const std::byte* at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(std::to_integer<std::uint8_t>(at[i])) << (8 * i);
  return value;
}

std::uint64_t mix(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

}  // namespace

std::array<std::uint64_t, 4> Xxh64::start() {
  return {kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1};
}

void Xxh64::take_stripe(const std::byte* stripe) {
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    lanes_[i] = mix(lanes_[i], load<std::uint64_t>(stripe + 8 * i));
}

void Xxh64::update(std::span<const std::byte> bytes) {
  length_ += bytes.size();
  if (kept_ > 0) {
    const std::size_t n = std::min(rest_.size() - kept_, bytes.size());
    std::copy_n(bytes.begin(), n, rest_.begin() + static_cast<std::ptrdiff_t>(kept_));
    kept_ += n;
    bytes = bytes.subspan(n);
    if (kept_ < rest_.size()) return;
    take_stripe(rest_.data());
    kept_ = 0;
  }
  for (; bytes.size() >= rest_.size(); bytes = bytes.subspan(rest_.size())) take_stripe(bytes.data());
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
  kept_ = bytes.size();
}

std::uint64_t Xxh64::finish() const {
  std::uint64_t hash = kPrime5;
  if (length_ >= rest_.size()) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) hash = (hash ^ mix(0, lane)) * kPrime1 + kPrime4;
  }
  hash += length_;
  std::size_t at = 0;
  for (; at + 8 <= kept_; at += 8)
    hash = std::rotl(hash ^ mix(0, load<std::uint64_t>(&rest_[at])), 27) * kPrime1 + kPrime4;
  if (at + 4 <= kept_) {
    hash = std::rotl(hash ^ (load<std::uint32_t>(&rest_[at]) * kPrime1), 23) * kPrime2 + kPrime3;
    at += 4;
  }
  for (; at < kept_; ++at)
    hash = std::rotl(hash ^ (std::to_integer<std::uint64_t>(rest_[at]) * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace assay
