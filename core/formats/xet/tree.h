// Xet's hash of a file from those of its chunks: a tree whose nodes are cut where a child's hash says so.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::xet {

using Hash = std::array<std::uint8_t, 32>;

// As Xet writes it: four words of 64 bits, the least significant byte first.
std::string to_text(const Hash& hash);
// The bytes that this text spells, one after another: what a Digest keeps.
Hash in_order_of_text(const Hash& hash);

// A chunk after the other; of each level only the children that have no parent yet are kept, so that a file of
// any length takes no room.
class HashTree {
 public:
  void add(const Hash& chunk, std::uint64_t bytes);
  Hash finish();  // of the file; all zeros where there was no chunk

 private:
  struct Node {
    Hash hash;
    std::uint64_t bytes = 0;
  };
  struct Level {
    std::vector<Node> open;    // children whose parent is not complete
    std::uint64_t closed = 0;  // parents made
  };
  void add(std::size_t level, const Node& node);
  void close(std::size_t level);

  std::vector<Level> levels_;
};

}  // namespace assay::xet
