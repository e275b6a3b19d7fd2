// Files hashed while they grow: in any order of writing, with memory kept or given up, several side by side.
#include "convert/output_digests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/formats/stream_digest.h"
#include "tests/convert/convert_support.h"

namespace assay {
namespace {

using test::TempDir;

std::vector<std::byte> random_bytes(std::size_t count, std::mt19937_64& random) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// A file, and the pieces in which it is to be written.
struct Growing {
  Growing(const fs::path& path, std::size_t bytes, std::size_t most_a_piece, std::mt19937_64& random)
      : contents(random_bytes(bytes, random)), file(path) {
    file.reserve(bytes);
    growing = std::make_unique<GrowingFile>(file, bytes);
    for (std::size_t at = 0; at < bytes;) {
      const std::size_t size = std::min<std::size_t>(bytes - at, 1 + random() % most_a_piece);
      pieces.emplace_back(at, size);
      at += size;
    }
  }
  void write(std::size_t piece, bool lend, Scratch<std::byte>& memory, OutputDigests& digests) {
    const auto [at, size] = pieces[piece];
    const auto bytes = memory.take(size);
    std::copy_n(contents.begin() + static_cast<std::ptrdiff_t>(at), size, bytes.begin());
    file.write_at(at, bytes);
    if (lend)
      digests.written(*growing, at, size, memory);
    else
      digests.written(*growing, at, size);
  }

  std::vector<std::byte> contents;
  AtomicFile file;
  std::unique_ptr<GrowingFile> growing;
  std::vector<std::pair<std::size_t, std::size_t>> pieces;
};

TEST(OutputDigests, AreThoseOfTheWholeFilesInWhateverOrderTheyAreWritten) {
  const TempDir folder;
  std::mt19937_64 random(7);
  for (int round = 0; round < 6; ++round) {
    OutputDigests digests;
    std::vector<std::unique_ptr<Growing>> files;
    std::vector<std::pair<std::size_t, std::size_t>> order;  // file and piece
    for (std::size_t i = 0; i < 5; ++i) {
      const std::size_t bytes = i == 0 ? 63 : 3'000'000 + random() % 2'000'000;
      files.push_back(std::make_unique<Growing>(folder.path() / std::to_string(i), bytes,
                                                round % 2 == 0 ? 300'000 : 9'000, random));
      digests.add(*files.back()->growing);
      for (std::size_t piece = 0; piece < files.back()->pieces.size(); ++piece) order.emplace_back(i, piece);
    }
    // Nearly in order, as threads write, or in none.
    const std::size_t apart = round < 4 ? 8 : order.size();
    std::stable_sort(order.begin(), order.end(), [](auto a, auto b) { return a.second < b.second; });
    for (std::size_t i = 0; i < order.size(); ++i)
      std::swap(order[i], order[i + random() % std::min(apart, order.size() - i)]);
    Scratch<std::byte> memory;
    std::size_t done = 0;
    bool found = true;
    for (const auto& [file, piece] : order) {
      files[file]->write(piece, random() % 3 != 0, memory, digests);
      if (random() % 4 == 0) done += digests.work(found).size();
    }
    for (found = true; found;) done += digests.work(found).size();
    EXPECT_EQ(done, files.size());
    for (const auto& file : files)
      EXPECT_EQ(file->growing->digest(), digest_of(DigestKind::sha256, file->contents)) << "round " << round;
  }
}

}  // namespace
}  // namespace assay
