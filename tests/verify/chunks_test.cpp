#include "verify/chunks.h"

#include "tests/support/git.h"
#include "tests/support/support.h"

namespace assay {
namespace {

std::vector<Digest> digests(std::string_view text, std::uint64_t chunk_bytes, std::size_t piece) {
  ChunkSink sink(chunk_bytes);
  while (!text.empty()) {
    const std::string_view part = text.substr(0, piece);
    sink.consume(std::as_bytes(std::span(part.data(), part.size())));
    text.remove_prefix(part.size());
  }
  sink.finish();
  return sink.digests();
}

TEST(ChunkSink, DigestsEachChunkHoweverTheBytesArrive) {
  const std::string text = "0123456789abcdef-tail";
  for (const std::size_t piece : {1, 3, 8, 9, 100}) {
    const auto found = digests(text, 8, piece);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[0].hex(), test::sha256sum("01234567"));
    EXPECT_EQ(found[1].hex(), test::sha256sum("89abcdef"));
    EXPECT_EQ(found[2].hex(), test::sha256sum("-tail"));
  }
  EXPECT_EQ(digests("0123456789abcdef", 8, 5).size(), 2u);
  EXPECT_TRUE(digests("", 8, 1).empty());
}

TEST(DamagedRanges, JoinsNeighboursAndEndsWithTheFile) {
  const auto good = digests("aaaabbbbccccddddee", 4, 18);
  const auto bad = digests("aaaaXbbbXcccddddeX", 4, 18);
  EXPECT_EQ(damaged_ranges(bad, good, 4, 18), (std::vector<ByteRange>{{4, 12}, {16, 18}}));
  EXPECT_TRUE(damaged_ranges(good, good, 4, 18).empty());
  const auto truncated = digests("aaaabb", 4, 6);
  EXPECT_EQ(damaged_ranges(truncated, good, 4, 18), (std::vector<ByteRange>{{4, 18}}));
  EXPECT_EQ(http_range({16777216, 33554432}), "16777216-33554431");
}

}  // namespace
}  // namespace assay
