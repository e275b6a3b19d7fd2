// A file as the disk has it: the bytes that were written, wherever a run of them begins and ends, and the page cache as it was.
#include "core/formats/hash/disk_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <random>

#include "core/formats/hash/page_cache.h"
#include "core/system/error.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::TempDir;

std::string drawn(std::size_t size) {
  std::mt19937_64 random(5);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

struct Written {
  explicit Written(std::size_t size) : text(drawn(size)) { test::write_file(path(), text); }
  fs::path path() const { return dir / "file"; }
  DiskFile open() const { return DiskFile(std::make_shared<const File>(File::open(path()))); }
  std::string part(std::uint64_t offset, std::size_t size) const { return text.substr(offset, size); }
  TempDir dir;
  std::string text;
};

std::span<std::byte> room(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}

constexpr std::size_t kSize = 9'000'001;  // more than the pieces that are read ahead
constexpr std::pair<std::uint64_t, std::size_t> kRuns[] = {
    {0, kSize}, {0, 1}, {kSize - 1, 1}, {4095, 2}, {4096, 1 << 20}, {1'048'575, 3'000'003}, {77, 0}};

TEST(DiskFile, ReadsWhatWasWritten) {
  const Written written(kSize);
  const DiskFile file = written.open();
  for (const auto& [offset, size] : kRuns) {
    std::string read(size, '\0');
    file.read_exactly(offset, room(read));
    EXPECT_TRUE(read == written.part(offset, size)) << offset << ' ' << size;
  }
  std::string beyond(2, '\0');
  EXPECT_THROW(file.read_exactly(kSize - 1, room(beyond)), Error);
}

TEST(DiskFile, IsReadAheadInOrder) {
  const Written written(kSize);
  const DiskFile file = written.open();
  ReadPool pool(4);
  DiskStream stream(pool);
  for (const std::size_t step : {std::size_t{64} << 10, std::size_t{1'300'000}}) {
    for (const auto& [offset, size] : kRuns) {
      stream.open(file, offset, size);
      std::string read(size, '\0');
      for (std::size_t at = 0; at < size; at += step)
        stream.read(room(read).subspan(at, std::min(step, size - at)));
      EXPECT_TRUE(read == written.part(offset, size)) << offset << ' ' << size;
    }
  }
  stream.open(file, 5, kSize);  // given up on the way
}

TEST(DiskFile, SaysWhereAFileEndsEarly) {
  const Written written(5000);
  const DiskFile file = written.open();
  ReadPool pool(2);
  DiskStream stream(pool);
  stream.open(file, 4000, 2000);
  std::string read(2000, '\0');
  EXPECT_THROW(stream.read(room(read)), Error);
}

TEST(DiskFile, LeavesThePageCacheAsItWas) {
  const Written written(1 << 20);
  const File plain = File::open(written.path());
  ASSERT_EQ(::fsync(plain.descriptor()), 0);
  drop_from_cache(plain.descriptor(), 0, plain.size());
  if (cache_share(plain.descriptor(), 0, plain.size()) != CacheShare::none)
    GTEST_SKIP() << "$TMPDIR is held in memory";
  const DiskFile file = written.open();
  std::string read(1 << 20, '\0');
  file.read_exactly(0, room(read));
  EXPECT_TRUE(read == written.text);
  EXPECT_EQ(cache_share(plain.descriptor(), 0, plain.size()), CacheShare::none);
}

}  // namespace
}  // namespace assay
