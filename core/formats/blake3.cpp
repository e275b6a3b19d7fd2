#include "core/formats/blake3.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "core/formats/blake3_kernels.h"

namespace assay {
namespace {

using namespace blake3;

inline void mix(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d, std::uint32_t x,
                std::uint32_t y) {
  a += b + x;
  d = std::rotr(d ^ a, 16);
  c += d;
  b = std::rotr(b ^ c, 12);
  a += b + y;
  d = std::rotr(d ^ a, 8);
  c += d;
  b = std::rotr(b ^ c, 7);
}

// The compression function: one block of one message.
Blake3::Words compress_one(const Blake3::Words& chaining, const std::array<std::uint32_t, 16>& words,
                           std::uint64_t counter, std::size_t length, std::uint32_t flags) {
  std::array<std::uint32_t, 16> v;
  std::copy(chaining.begin(), chaining.end(), v.begin());
  std::copy_n(std::begin(kInitial), 4, v.begin() + 8);
  v[12] = static_cast<std::uint32_t>(counter);
  v[13] = static_cast<std::uint32_t>(counter >> 32);
  v[14] = static_cast<std::uint32_t>(length);
  v[15] = flags;
  for (const auto& order : kSchedule) {
    const auto m = [&](std::size_t i) { return words[order[i]]; };
    mix(v[0], v[4], v[8], v[12], m(0), m(1));
    mix(v[1], v[5], v[9], v[13], m(2), m(3));
    mix(v[2], v[6], v[10], v[14], m(4), m(5));
    mix(v[3], v[7], v[11], v[15], m(6), m(7));
    mix(v[0], v[5], v[10], v[15], m(8), m(9));
    mix(v[1], v[6], v[11], v[12], m(10), m(11));
    mix(v[2], v[7], v[8], v[13], m(12), m(13));
    mix(v[3], v[4], v[9], v[14], m(14), m(15));
  }
  Blake3::Words next;
  for (std::size_t i = 0; i < 8; ++i) next[i] = v[i] ^ v[i + 8];
  return next;
}

// All but the last compression of a node, whose flags depend on whether it is the root.
struct LastBlock {
  Blake3::Words chaining;
  std::array<std::uint32_t, 16> words{};
  std::uint64_t counter = 0;
  std::size_t length = 0;
  std::uint32_t flags = 0;
  Blake3::Words finish(std::uint32_t more = 0) const {
    return compress_one(chaining, words, (more & kRoot) != 0 ? 0 : counter, length, flags | more);
  }
};

LastBlock chunk_output(const Blake3::Words& key, std::uint32_t flags, std::uint64_t counter,
                       std::span<const std::byte> bytes) {
  LastBlock out{key, {}, counter, 0, flags | kChunkStart};
  while (true) {
    const auto block = bytes.first(std::min(bytes.size(), kBlockBytes));
    std::array<std::byte, kBlockBytes> padded{};
    std::copy(block.begin(), block.end(), padded.begin());
    for (std::size_t i = 0; i < 16; ++i) out.words[i] = word_at(&padded[4 * i]);
    out.length = block.size();
    bytes = bytes.subspan(block.size());
    if (bytes.empty()) break;
    out.chaining = out.finish();
    out.flags = flags;
  }
  out.flags |= kChunkEnd;
  return out;
}

LastBlock parent_output(const Blake3::Words& left, const Blake3::Words& right, const Blake3::Words& key,
                        std::uint32_t flags) {
  LastBlock out{key, {}, 0, kBlockBytes, flags | kParent};
  std::copy(left.begin(), left.end(), out.words.begin());
  std::copy(right.begin(), right.end(), out.words.begin() + 8);
  return out;
}

}  // namespace

Blake3::Blake3() {
  std::copy(std::begin(kInitial), std::end(kInitial), key_.begin());
}

Blake3::Blake3(const std::array<std::uint8_t, 32>& key) : flags_(kKeyedHash) {
  for (std::size_t i = 0; i < 8; ++i) key_[i] = word_at(reinterpret_cast<const std::byte*>(&key[4 * i]));
}

// A subtree is whole when as many chunks are in it as a power of two: then it takes its left neighbour in.
void Blake3::push_chunk(Words chaining) {
  ++chunks_;
  for (std::uint64_t whole = chunks_; (whole & 1) == 0; whole >>= 1) {
    chaining = parent_output(stack_.back(), chaining, key_, flags_).finish();
    stack_.pop_back();
  }
  stack_.push_back(chaining);
}

void Blake3::add_whole_chunks(std::span<const std::byte> bytes) {
  while (bytes.size() > kChunk) {
    const std::size_t count = std::min(bytes.size() / kChunk, kMostLanes);
    const LaneKernel& kernel = lane_kernel_for(count);
    const std::size_t taken = std::min(count, kernel.lanes);
    std::array<LaneInput, kMostLanes> inputs;
    std::array<Words, kMostLanes> out;
    for (std::size_t i = 0; i < kernel.lanes; ++i) {
      const std::size_t chunk = i < taken ? i : 0;
      inputs[i] = {bytes.data() + chunk * kChunk, kChunk, kChunkStart, kChunkEnd, chunks_ + chunk};
    }
    static_assert(sizeof(out) == sizeof(std::uint32_t[kMostLanes][8]));
    kernel.hash(key_.data(), flags_, inputs.data(), reinterpret_cast<std::uint32_t(*)[8]>(out.data()));
    for (std::size_t i = 0; i < taken; ++i) push_chunk(out[i]);
    bytes = bytes.subspan(taken * kChunk);
  }
  if (!bytes.empty()) push_chunk(chunk_output(key_, flags_, chunks_, bytes.first(kChunk)).finish());
}

void Blake3::update(std::span<const std::byte> bytes) {
  if (filled_ > 0 || bytes.size() <= kChunk) {
    const std::size_t taken = std::min(bytes.size(), kChunk - filled_);
    std::copy_n(bytes.begin(), taken, chunk_.begin() + static_cast<std::ptrdiff_t>(filled_));
    filled_ += taken;
    bytes = bytes.subspan(taken);
    if (bytes.empty()) return;
    add_whole_chunks(chunk_);
    filled_ = 0;
  }
  // The last chunk waits, though it be whole.
  const std::size_t whole = (bytes.size() - 1) / kChunk * kChunk;
  add_whole_chunks(bytes.first(whole));
  filled_ = bytes.size() - whole;
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(whole), filled_, chunk_.begin());
}

std::array<std::uint8_t, 32> Blake3::finish() const {
  LastBlock out = chunk_output(key_, flags_, chunks_, std::span(chunk_).first(filled_));
  for (auto left = stack_.rbegin(); left != stack_.rend(); ++left)
    out = parent_output(*left, out.finish(), key_, flags_);
  const Words words = out.finish(kRoot);
  std::array<std::uint8_t, 32> digest;
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::uint8_t>(words[i / 4] >> (8 * (i % 4)));
  return digest;
}

}  // namespace assay
