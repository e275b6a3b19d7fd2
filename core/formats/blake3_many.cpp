#include "core/formats/blake3_many.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "core/formats/blake3.h"

namespace assay {
namespace {

using namespace blake3;
using Node = std::array<std::byte, 32>;  // a chaining value, as a parent hashes it

// Collects inputs until every lane has one.
class LaneQueue {
 public:
  LaneQueue(const Blake3Key& key, std::size_t lanes) : lanes_(lanes) {
    for (std::size_t i = 0; i < key_.size(); ++i)
      key_[i] = word_at(reinterpret_cast<const std::byte*>(&key[4 * i]));
  }

  void chunk(std::span<const std::byte> bytes, std::uint64_t counter, std::uint32_t root, Node& out) {
    const std::byte* at = bytes.data();
    if (bytes.size() <
        kChunkBytes) {  // its last block is filled up with zeros, and nothing is read beyond it
      const auto padded = std::span(padded_.get() + filled_ * kChunkBytes, kChunkBytes);
      std::fill(std::copy(bytes.begin(), bytes.end(), padded.begin()), padded.end(), std::byte{0});
      at = padded.data();
    }
    push({at, static_cast<std::uint32_t>(bytes.size()), kChunkStart, kChunkEnd | root, counter}, out);
  }

  void parent(const Node* children, std::uint32_t root, Node& out) {
    push({children->data(), static_cast<std::uint32_t>(kBlockBytes), kParent, root, 0}, out);
  }

  void flush() {
    if (filled_ == 0) return;
    std::fill(inputs_.begin() + static_cast<std::ptrdiff_t>(filled_), inputs_.end(), inputs_[0]);
    std::uint32_t hashed[kMostLanes][8];
    lane_kernel_for(filled_, lanes_).hash(key_.data(), kKeyedHash, inputs_.data(), hashed);
    for (std::size_t lane = 0; lane < filled_; ++lane) store(hashed[lane], *outputs_[lane]);
    filled_ = 0;
  }

 private:
  void push(const LaneInput& input, Node& out) {
    inputs_[filled_] = input;
    outputs_[filled_] = &out;
    if (++filled_ == lanes_) flush();
  }

  static void store(std::uint32_t* words, Node& out) {
    if constexpr (std::endian::native == std::endian::big)
      std::transform(words, words + 8, words, [](std::uint32_t word) { return __builtin_bswap32(word); });
    std::memcpy(out.data(), words, out.size());
  }

  const std::size_t lanes_;
  Blake3::Words key_{};
  std::array<LaneInput, kMostLanes> inputs_{};
  std::array<Node*, kMostLanes> outputs_{};
  std::size_t filled_ = 0;
  std::unique_ptr<std::byte[]> padded_ = std::make_unique<std::byte[]>(kMostLanes * kChunkBytes);
};

std::size_t chunks_of(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + kChunkBytes - 1) / kChunkBytes);
}

}  // namespace

void blake3_many(const Blake3Key& key, std::span<const std::span<const std::byte>> messages,
                 std::span<std::array<std::uint8_t, 32>> out, std::size_t widest) {
  LaneQueue lanes(key, lane_kernel_for(widest).lanes);
  std::vector<std::size_t> counts;
  std::size_t total = 0, most = 0;
  for (const auto& message : messages) {
    counts.push_back(chunks_of(message.size()));
    total += counts.back();
    most = std::max(most, counts.back());
  }
  std::vector<Node> nodes(total), above(total);
  for (std::size_t m = 0, at = 0; m < messages.size(); ++m) {
    for (std::size_t i = 0; i < counts[m]; ++i) {
      const auto rest = messages[m].subspan(i * kChunkBytes);
      lanes.chunk(rest.first(std::min(rest.size(), kChunkBytes)), i, counts[m] == 1 ? kRoot : 0, nodes[at++]);
    }
  }
  lanes.flush();
  // Level by level: neighbours are joined, and one that has none goes up as it is. The left part of a tree is
  // whole then, as its rules have it.
  for (; most > 1; most = (most + 1) / 2) {
    std::size_t from = 0, to = 0;
    for (std::size_t& count : counts) {
      for (std::size_t i = 0; i + 1 < count; i += 2)
        lanes.parent(&nodes[from + i], count == 2 ? kRoot : 0, above[to++]);
      if (count % 2 == 1) above[to++] = nodes[from + count - 1];
      from += count;
      count = (count + 1) / 2;
    }
    lanes.flush();
    nodes.swap(above);
  }
  for (std::size_t m = 0; m < messages.size(); ++m)
    std::transform(nodes[m].begin(), nodes[m].end(), out[m].begin(), std::to_integer<std::uint8_t>);
}

}  // namespace assay
