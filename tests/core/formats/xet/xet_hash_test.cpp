// Xet hashes against hf_xet's, against the boundaries that xet-core's tests had before September 2025
// (data/make_xet_fixtures.py), and against the rules written down plainly.
#include "core/formats/xet/xet_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <string>

#include "core/formats/blake3.h"
#include "core/formats/blake3_many.h"
#include "core/formats/xet/gear_table.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::size_t size, std::uint64_t state) {
  Bytes bytes;
  while (bytes.size() < size) {
    std::uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    z ^= z >> 31;
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(z >> (8 * i)));
  }
  bytes.resize(size);
  return bytes;
}

// A cut follows once in each repetition: xet-core's chunking.rs, get_triggering_base_data.
Bytes hitting_bytes(std::size_t size, std::size_t padding) {
  constexpr std::uint8_t kPattern[128] = {
      154, 52,  42,  34,  159, 75,  126, 224, 70,  236, 12,  196, 79,  236, 178, 124, 127, 50,  99,
      178, 44,  176, 174, 126, 250, 235, 205, 174, 252, 122, 35,  10,  20,  101, 214, 69,  193, 8,
      115, 105, 158, 228, 120, 111, 136, 162, 198, 251, 211, 183, 253, 252, 164, 147, 63,  16,  186,
      162, 117, 23,  170, 36,  205, 187, 174, 76,  210, 174, 211, 175, 12,  173, 145, 59,  2,   70,
      222, 181, 159, 227, 182, 156, 189, 51,  226, 106, 24,  50,  183, 157, 140, 10,  8,   23,  212,
      70,  10,  234, 23,  33,  219, 254, 39,  236, 70,  49,  191, 116, 9,   115, 15,  101, 26,  159,
      165, 220, 15,  170, 56,  125, 92,  163, 94,  235, 38,  40,  49,  81};
  Bytes bytes;
  for (const std::uint8_t byte : kPattern) bytes.push_back(static_cast<std::byte>(byte));
  bytes.resize(bytes.size() + padding);
  const std::size_t period = bytes.size();
  for (std::size_t i = period; i < size; ++i) bytes.push_back(bytes[i - period]);
  return bytes;
}

XetDigests hash_by(const Bytes& bytes, std::size_t piece, int jobs) {
  XetHasher hasher(jobs);
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    hasher.update(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
  return hasher.finish();
}

// The rules, one byte after another.
Digest plainly(const Bytes& bytes, bool older) {
  constexpr Blake3Key kChunkKey = {102, 151, 245, 119, 91,  149, 80,  222, 49,  53,  203,
                                   172, 165, 151, 24,  28,  157, 228, 33,  16,  155, 235,
                                   43,  88,  180, 208, 176, 75,  147, 173, 242, 41};
  xet::HashTree tree;
  std::size_t begin = 0;
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t length = i + 1 - begin;
    if (length > 8192 - 65) hash = 2 * hash + xet::kGearTable[std::to_integer<std::size_t>(bytes[i])];
    const bool cut = length > 8192 - 65 && (hash >> 48) == 0 && (older || length >= 8192);
    if (!cut && length < 131072 && i + 1 < bytes.size()) continue;
    Blake3 chunk(kChunkKey);
    chunk.update(std::span(bytes).subspan(begin, length));
    tree.add(chunk.finish(), length);
    begin = i + 1;
    hash = 0;
  }
  return {DigestKind::xet, xet::in_order_of_text(tree.finish())};
}

TEST(XetHash, IsThatOfItsAuthors) {
  std::ifstream goldens(test::source_dir() / "data/fixtures/xet/GOLDENS.tsv");
  std::string line, kind, current, older;
  std::uint64_t parameter = 0, differ = 0;
  std::size_t size = 0, cases = 0;
  std::getline(goldens, line);
  for (; goldens >> kind >> parameter >> size >> current >> older; ++cases) {
    const Bytes bytes = kind == "hitting"    ? hitting_bytes(size, parameter)
                        : kind == "constant" ? Bytes(size, static_cast<std::byte>(parameter))
                                             : random_bytes(size, parameter);
    const XetDigests made = hash_by(bytes, 1 << 18, 1);
    EXPECT_EQ(made.current.hex(), current) << kind << " " << parameter << ", " << size << " bytes";
    if (older == "-") continue;
    EXPECT_EQ(made.older.hex(), older) << kind << " " << parameter << ", " << size << " bytes";
    differ += older != current;
  }
  EXPECT_EQ(cases, 160u);
  EXPECT_EQ(differ, 13u);
}

TEST(XetHash, OfNothingIsZeros) {
  EXPECT_EQ(hash_by({}, 1, 1).current.hex(), std::string(64, '0'));
  EXPECT_EQ(hash_by({}, 1, 1).older.hex(), std::string(64, '0'));
}

// Several buffers long, in pieces of every kind, by one thread and by several.
TEST(XetHash, DoesNotDependOnHowTheBytesCome) {
  for (const std::size_t size :
       {std::size_t{8191}, std::size_t{524288}, std::size_t{2097152}, std::size_t{4300001}}) {
    for (const bool hits : {false, true}) {
      const Bytes bytes = hits ? hitting_bytes(size, 78) : random_bytes(size, 7);
      const Digest current = plainly(bytes, false), older = plainly(bytes, true);
      EXPECT_TRUE(!hits || current != older);
      for (const std::size_t piece : {std::size_t{1000}, std::size_t{65536}, std::size_t{3000000}}) {
        for (const int jobs : {1, 3}) {
          const XetDigests made = hash_by(bytes, piece, jobs);
          EXPECT_EQ(made.current, current) << size << " bytes by " << piece << ", jobs " << jobs;
          EXPECT_EQ(made.older, older) << size << " bytes by " << piece << ", jobs " << jobs;
        }
      }
    }
  }
}

// The chunker begins with an empty hash at byte 8127: the first cut so many bytes later, on both sides of where the
// dialects part.
TEST(XetHash, KnowsEachPlaceAroundTheShortestLength) {
  std::mt19937_64 random(6);
  for (const std::size_t after : {20, 45, 61, 62, 63, 64, 65, 66}) {
    Bytes bytes(after);
    do {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    } while (xet::first_cut(0, bytes) != after);
    bytes.insert(bytes.begin(), 8127, std::byte{'x'});
    bytes.resize(20000, std::byte{'y'});
    const XetDigests made = hash_by(bytes, 4096, 1);
    EXPECT_EQ(made.current, plainly(bytes, false)) << after;
    EXPECT_EQ(made.older, plainly(bytes, true)) << after;
    EXPECT_EQ(made.current != made.older, after < 65) << after;
  }
}

// Repeated patterns that the rolling hash hits again and again, at every distance to the shortest length.
TEST(XetHash, FollowsTheRulesWhereCutsAreMany) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 200; ++i) {
    const Bytes bytes = hitting_bytes(20000 + random() % 200000, random() % 8500);
    const XetDigests made = hash_by(bytes, 1 + random() % 100000, 1);
    EXPECT_EQ(made.current, plainly(bytes, false)) << i;
    EXPECT_EQ(made.older, plainly(bytes, true)) << i;
  }
}

TEST(Gear, MarksWhatARollingHashOfAllBytesBeforeFinds) {
  for (const xet::GearKernel& kernel : xet::gear_kernels()) {
    for (const std::size_t size : {0, 1, 63, 64, 255, 256, 257, 511, 512, 513, 5000, 70000, 300000}) {
      const Bytes bytes = size == 300000 ? random_bytes(size, 5) : hitting_bytes(size, size % 100);
      const std::size_t used = std::min(size, bytes.size());
      std::vector<std::uint64_t> marks(bytes.size() / 64 + 1, ~std::uint64_t{0});
      const std::uint64_t after = xet::mark_cuts(99, std::span(bytes).first(used), marks.data(), kernel);
      std::uint64_t hash = 99, found = 0;
      for (std::size_t i = 0; i < used; ++i) {
        hash = 2 * hash + xet::kGearTable[std::to_integer<std::size_t>(bytes[i])];
        ASSERT_EQ((marks[i / 64] >> (i % 64)) & 1, hash >> 48 == 0 ? 1u : 0u)
            << kernel.streams << " streams, " << size << " at " << i;
        found += hash >> 48 == 0;
      }
      EXPECT_EQ(after, hash);
      if (size > 300) {
        EXPECT_GT(found, 0u) << size;
      }
    }
  }
}

// The list of nodes as a whole, level by level: what HashTree does without keeping it.
xet::Hash tree_of_list(std::vector<std::pair<xet::Hash, std::uint64_t>> nodes) {
  if (nodes.empty()) return {};
  constexpr Blake3Key kNodeKey = {1,   126, 197, 199, 165, 71,  41,  150, 253, 148, 102,
                                  102, 180, 138, 2,   230, 93,  221, 83,  111, 55,  199,
                                  109, 210, 248, 99,  82,  230, 74,  83,  113, 63};
  const auto keyed = [](const Blake3Key& key, std::span<const std::byte> bytes) {
    Blake3 hash(key);
    hash.update(bytes);
    return hash.finish();
  };
  while (nodes.size() > 1) {
    std::vector<std::pair<xet::Hash, std::uint64_t>> above;
    for (std::size_t at = 0; at < nodes.size();) {
      const std::size_t left = nodes.size() - at;
      std::size_t count = std::min<std::size_t>(left, 9);
      for (std::size_t i = 2; left > 2 && i < count; ++i) {
        if (nodes[at + i].first[24] % 4 == 0) count = i + 1;
      }
      std::string text;
      std::uint64_t bytes = 0;
      for (std::size_t i = at; i < at + count; ++i) {
        text += xet::to_text(nodes[i].first) + " : " + std::to_string(nodes[i].second) + "\n";
        bytes += nodes[i].second;
      }
      above.emplace_back(keyed(kNodeKey, std::as_bytes(std::span(text))), bytes);
      at += count;
    }
    nodes = std::move(above);
  }
  return keyed({}, std::as_bytes(std::span(nodes[0].first)));
}

TEST(XetTree, IsThatOfTheWholeList) {
  std::mt19937_64 random(3);
  for (std::size_t count = 0; count < 300; ++count) {
    std::vector<std::pair<xet::Hash, std::uint64_t>> nodes(count);
    xet::HashTree tree;
    for (auto& [hash, bytes] : nodes) {
      for (std::uint8_t& byte : hash) byte = static_cast<std::uint8_t>(random());
      tree.add(hash, bytes = random() % 131073);
    }
    EXPECT_EQ(tree.finish(), tree_of_list(nodes)) << count;
  }
}

TEST(Blake3Many, IsBlake3OfEach) {
  Blake3Key key{};
  key[0] = 7;
  std::mt19937_64 random(4);
  for (const blake3::LaneKernel& kernel : blake3::lane_kernels()) {
    for (int round = 0; round < 20; ++round) {
      std::vector<Bytes> messages;
      for (std::size_t i = 0; i < 1 + random() % 40; ++i) {
        const std::size_t near = 1024 * (random() % 20);
        messages.push_back(random_bytes(random() % 3 == 0 ? near : near + random() % 1024, random()));
      }
      std::vector<std::span<const std::byte>> spans(messages.begin(), messages.end());
      std::vector<std::array<std::uint8_t, 32>> made(messages.size());
      blake3_many(key, spans, made, kernel.lanes);
      for (std::size_t i = 0; i < messages.size(); ++i) {
        Blake3 alone(key);
        alone.update(messages[i]);
        EXPECT_EQ(made[i], alone.finish()) << kernel.lanes << " lanes, " << messages[i].size() << " bytes";
      }
    }
  }
}

}  // namespace
}  // namespace assay
