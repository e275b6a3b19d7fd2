#include "core/formats/xet/tree.h"

#include <fmt/format.h>

#include "core/formats/blake3.h"
#include "core/system/text.h"

namespace assay::xet {
namespace {

// xet_core_structures/src/merklehash/data_hash.rs
constexpr Hash kNodeKey = {1,  126, 197, 199, 165, 71,  41,  150, 253, 148, 102, 102, 180, 138, 2,   230,
                           93, 221, 83,  111, 55,  199, 109, 210, 248, 99,  82,  230, 74,  83,  113, 63};
constexpr Hash kNoSalt = {};

constexpr std::size_t kFewestBeforeCut = 3, kMostChildren = 9;

// That its hash modulo 4 is zero.
bool ends_node(const Hash& hash) {
  return hash[24] % 4 == 0;
}

Hash keyed(const Hash& key, std::span<const std::byte> bytes) {
  Blake3 hash(key);
  hash.update(bytes);
  return hash.finish();
}

}  // namespace

Hash in_order_of_text(const Hash& hash) {
  Hash turned;
  for (std::size_t i = 0; i < hash.size(); ++i) turned[i] = hash[i / 8 * 8 + 7 - i % 8];
  return turned;
}

std::string to_text(const Hash& hash) {
  return to_hex(in_order_of_text(hash));
}

void HashTree::add(const Hash& chunk, std::uint64_t bytes) {
  add(0, {chunk, bytes});
}

void HashTree::add(std::size_t level, const Node& node) {
  if (level == levels_.size()) levels_.emplace_back();
  std::vector<Node>& open = levels_[level].open;
  open.push_back(node);
  const bool cut = open.size() >= kFewestBeforeCut && ends_node(node.hash);
  if (cut || open.size() == kMostChildren) close(level);
}

void HashTree::close(std::size_t level) {
  std::string text;
  Node parent;
  for (const Node& child : levels_[level].open) {
    text += fmt::format("{} : {}\n", to_text(child.hash), child.bytes);
    parent.bytes += child.bytes;
  }
  parent.hash = keyed(kNodeKey, std::as_bytes(std::span(text)));
  levels_[level].open.clear();
  ++levels_[level].closed;
  add(level + 1, parent);
}

Hash HashTree::finish() {
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    const Level& here = levels_[level];
    const bool root = here.closed == 0 && here.open.size() == 1;  // alone on its level
    if (root) return keyed(kNoSalt, std::as_bytes(std::span(here.open[0].hash)));
    if (!here.open.empty()) close(level);
  }
  return {};
}

}  // namespace assay::xet
