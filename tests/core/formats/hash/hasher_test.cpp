#include "core/formats/hash/hasher.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <stdexcept>
#include <thread>

#include "core/formats/hash/file_reader.h"
#include "core/formats/hash/page_cache.h"
#include "core/formats/hash/sha256_kernels.h"
#include "core/system/threads.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::TempDir;
using test::write_file;

std::string noise(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t word = random();
    for (std::size_t j = i; j < std::min(size, i + 8); ++j)
      text[j] = static_cast<char>(word >> (8 * (j - i)));
  }
  return text;
}

std::string openssl(DigestKind kind, std::string_view text) {
  return digest_of(kind, std::as_bytes(std::span(text))).hex();
}

// Results by index; each job must be reported exactly once.
std::vector<HashResult> hash_all(const std::vector<HashJob>& jobs, const HashOptions& options = {}) {
  std::vector<HashResult> results(jobs.size());
  std::vector<int> reports(jobs.size(), 0);
  hash_files(jobs, options, [&](std::size_t i, HashResult&& result) {
    ++reports.at(i);
    results[i] = std::move(result);
  });
  EXPECT_EQ(reports, std::vector<int>(jobs.size(), 1));
  return results;
}

class Collect : public ByteSink {
 public:
  void consume(std::span<const std::byte> bytes) override {
    EXPECT_FALSE(finished);
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void finish() override { finished = true; }
  std::string text;
  bool finished = false;
};

class OnFirstBytes : public ByteSink {
 public:
  explicit OnFirstBytes(std::function<void()> act) : act_(std::move(act)) {}
  void consume(std::span<const std::byte>) override {
    if (std::exchange(begun_, true)) return;
    act_();
  }
  void finish() override { finished = true; }
  bool finished = false;

 private:
  std::function<void()> act_;
  bool begun_ = false;
};

void leave_cache(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ::fsync(descriptor);
  drop_from_cache(descriptor, 0, fs::file_size(path));
  ::close(descriptor);
}

CacheShare share_of(const fs::path& path) {
  const File file = File::open(path);
  return cache_share(file.descriptor(), 0, file.size());
}

// Sizes around chunk, piece and window ends, and ragged ones.
const std::vector<std::size_t> kSizes = {0,
                                         1,
                                         63,
                                         64,
                                         65,
                                         1000,
                                         65535,
                                         65536,
                                         65537,
                                         131072,
                                         524287,
                                         524288,
                                         (1 << 20) + 1,
                                         (3 << 20) + 5,
                                         16 << 20,
                                         (16 << 20) + 1};

class Files {
 public:
  explicit Files(const fs::path& folder) {
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      texts.push_back(noise(kSizes[i], i));
      paths.push_back(folder / std::to_string(i));
      write_file(paths.back(), texts.back());
      digests.push_back(openssl(DigestKind::sha256, texts.back()));
    }
  }
  void expect_hashed(const HashOptions& options) const {
    std::vector<Collect> sinks(paths.size());
    std::vector<HashJob> jobs;
    for (std::size_t i = 0; i < paths.size(); ++i) jobs.push_back({.path = paths[i], .sink = &sinks[i]});
    const auto results = hash_all(jobs, options);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      SCOPED_TRACE(texts[i].size());
      EXPECT_TRUE(results[i].complete);
      EXPECT_FALSE(results[i].changed);
      EXPECT_FALSE(results[i].error.has_value());
      EXPECT_EQ(results[i].bytes, texts[i].size());
      EXPECT_EQ(results[i].identity, File::open(paths[i]).identity());
      EXPECT_EQ(results[i].digest.hex(), digests[i]);
      EXPECT_TRUE(sinks[i].text == texts[i]) << "the sink saw other bytes, or another order";
      EXPECT_TRUE(sinks[i].finished);
    }
  }
  std::vector<fs::path> paths;
  std::vector<std::string> texts, digests;
};

TEST(Hasher, HashesFromTheCacheWithEveryKernelAndAnyNumberOfJobs) {
  const TempDir folder;
  const Files files(folder.path());
  for (const int jobs : {1, 5, 100}) files.expect_hashed({.jobs = jobs});
  for (const auto& kernel : sha256::kernels()) files.expect_hashed({.jobs = 2, .kernel = kernel.name});
}

TEST(Hasher, ReadsAroundTheCacheAndLeavesItAsItWas) {
  const TempDir folder;
  const Files files(folder.path());
  for (const auto& path : files.paths) leave_cache(path);
  if (share_of(files.paths.back()) != CacheShare::none) GTEST_SKIP() << "SKIPPED: $TMPDIR is held in memory";
  files.expect_hashed({.jobs = 2});
  for (const std::size_t i : {4U, 9U, 13U, 15U})
    EXPECT_EQ(share_of(files.paths[i]), CacheShare::none) << kSizes[i];
}

TEST(Hasher, LeavesPagesThatOthersCached) {
  const TempDir folder;
  const std::string text = noise(30 << 20, 1);
  write_file(folder / "a", text);
  leave_cache(folder / "a");
  if (share_of(folder / "a") != CacheShare::none) GTEST_SKIP() << "SKIPPED: $TMPDIR is held in memory";
  const std::uint64_t cached = 19 << 20;
  {
    const File file = File::open(folder / "a");
    std::vector<std::byte> start(cached);
    ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_RANDOM);  // no readahead beyond it
    file.read_exactly(0, start);
  }
  EXPECT_EQ(hash_all({{.path = folder / "a"}})[0].digest.hex(), openssl(DigestKind::sha256, text));
  const File file = File::open(folder / "a");
  EXPECT_EQ(cache_share(file.descriptor(), 0, cached), CacheShare::all);
  EXPECT_EQ(cache_share(file.descriptor(), 20 << 20, 10 << 20), CacheShare::none);
}

TEST(Hasher, KeepsWhatItReadInTheCacheWhenAsked) {
  const TempDir folder;
  const Files files(folder.path());
  CacheShare left = CacheShare::none;
  for (int i = 0; i < 3 && left != CacheShare::all; ++i) {  // the system may take pages when it likes
    for (const auto& path : files.paths) leave_cache(path);
    files.expect_hashed({.jobs = 2, .keep_cache = true});
    left = share_of(files.paths.back());
  }
  EXPECT_EQ(left, CacheShare::all);
}

TEST(Hasher, ReadsFileSystemsHeldInMemory) {
  if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "SKIPPED: no /dev/shm";
  const fs::path folder = "/dev/shm/assay-hasher-test-" + std::to_string(::getpid());
  Files(folder).expect_hashed({.jobs = 2});
  fs::remove_all(folder);
}

TEST(Hasher, ComputesGitObjectIds) {
  const TempDir folder;
  write_file(folder / "empty", "");
  write_file(folder / "text", "test content\n");
  const std::string large = noise((2 << 20) + 1, 7);
  write_file(folder / "large", large);
  const auto results = hash_all({{.path = folder / "empty", .kind = DigestKind::git_sha1},
                                 {.path = folder / "text", .kind = DigestKind::git_sha1},
                                 {.path = folder / "large", .kind = DigestKind::git_sha1},
                                 {.path = folder / "text"}});
  // The id of the empty blob is known to every git; the second is the example of "Git Internals" (Pro
  // Git, 10.2).
  EXPECT_EQ(results[0].digest.hex(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(results[1].digest.hex(), "d670460b4b4aece5915caf5c68d12f560a9fe3e4");
  EXPECT_EQ(results[3].digest.kind, DigestKind::sha256);
  ASSAY_PROGRAM_OR_SKIP("git");
  const auto git = test::run({"git", "hash-object", "--no-filters", (folder / "large").string()});
  EXPECT_EQ(results[2].digest.hex() + "\n", git.out);
}

TEST(Hasher, TakesTheLargestFirst) {
  const TempDir folder;
  for (const int size : {10, 30, 20}) write_file(folder / std::to_string(size), std::string(size, 'x'));
  std::vector<std::uint64_t> order;
  const std::vector<HashJob> jobs = {
      {.path = folder / "10"}, {.path = folder / "30"}, {.path = folder / "20"}};
  hash_files(jobs, {.jobs = 1, .kernel = "openssl"},
             [&](std::size_t, HashResult&& result) { order.push_back(result.bytes); });
  EXPECT_EQ(order, (std::vector<std::uint64_t>{30, 20, 10}));
}

class Slow : public ByteSink {
 public:
  void consume(std::span<const std::byte>) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
};

// The small file is begun last and ends first.
TEST(Hasher, NamesTheFilesThatAreStillBeingRead) {
  const TempDir dir;
  write_file(dir / "large", noise(4 * FileReader::kChunk, 1));
  write_file(dir / "small", noise(1000, 2));
  Slow slow;
  const std::vector<HashJob> jobs = {{.path = dir / "large", .sink = &slow}, {.path = dir / "small"}};
  testing::internal::CaptureStderr();
  {
    Progress progress(ProgressMode::always, "verifying", 1);
    hash_all(jobs, {.jobs = 1, .progress = &progress});
  }
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_NE(shown.find("  large"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("  small"), std::string::npos) << shown;
}

TEST(Hasher, HasNothingToDoWithoutFiles) {
  hash_files({}, {.jobs = 4}, [](std::size_t, HashResult&&) { FAIL(); });
}

TEST(Hasher, ReportsAFileThatCannotBeReadAndGoesOn) {
  const TempDir folder;
  write_file(folder / "good", "abc");
  fs::create_directory(folder / "folder");
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  const auto results = hash_all({{.path = folder / "missing"},
                                 {.path = folder / "fifo"},
                                 {.path = folder / "good"},
                                 {.path = folder / "folder"},
                                 {.path = "/dev/zero"}});
  for (const std::size_t i : {0U, 1U, 3U, 4U}) {
    ASSERT_TRUE(results[i].error.has_value()) << i;
    EXPECT_FALSE(results[i].complete);
  }
  EXPECT_EQ(results[0].error->kind(), ErrorKind::io);
  EXPECT_NE(results[1].error->message().find("FIFO"), std::string::npos);
  EXPECT_EQ(results[0].error->file(), (folder / "missing").string());
  EXPECT_TRUE(results[2].complete);
  EXPECT_EQ(results[2].digest.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Hasher, RespectsPermissions) {
  if (::geteuid() == 0) GTEST_SKIP() << "SKIPPED: root may read anything";
  const TempDir folder;
  write_file(folder / "secret", "abc");
  fs::permissions(folder / "secret", fs::perms::none);
  EXPECT_NE(hash_all({{.path = folder / "secret"}})[0].error->message().find("Permission"),
            std::string::npos);
}

TEST(Hasher, NoticesAFileThatShrinks) {
  for (const int jobs : {1, 4}) {  // read by the hashing thread, and ahead of it
    const TempDir folder;
    write_file(folder / "a", noise(20 << 20, 1));
    OnFirstBytes cut([&] { fs::resize_file(folder / "a", 100'000); });
    const auto result = hash_all({{.path = folder / "a", .sink = &cut}}, {.jobs = jobs})[0];
    EXPECT_TRUE(result.changed);
    EXPECT_FALSE(result.error.has_value());
    EXPECT_LT(result.bytes, 20U << 20);
    EXPECT_FALSE(cut.finished);
  }
}

TEST(Hasher, NoticesAFileThatGrows) {
  const TempDir folder;
  const std::string text = noise(300'000, 1);
  write_file(folder / "a", text);
  OnFirstBytes grow([&] { fs::resize_file(folder / "a", 400'000); });
  const auto result = hash_all({{.path = folder / "a", .sink = &grow}})[0];
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.bytes, text.size());
}

TEST(Hasher, NoticesAFileThatIsTouched) {
  const TempDir folder;
  write_file(folder / "a", "abc");
  OnFirstBytes touch(
      [&] { fs::last_write_time(folder / "a", fs::file_time_type::clock::now() + std::chrono::hours(1)); });
  const auto result = hash_all({{.path = folder / "a", .sink = &touch}})[0];
  EXPECT_TRUE(result.changed);
  EXPECT_TRUE(result.complete);
}

class InterruptedHash : public testing::Test {
 protected:
  void TearDown() override { set_interrupted(false); }
};

TEST_F(InterruptedHash, EndsEveryFileIncomplete) {
  const TempDir folder;
  std::vector<HashJob> jobs;
  OnFirstBytes stop([] { set_interrupted(true); });
  write_file(folder / "largest", noise(20 << 20, 1));
  jobs.push_back({.path = folder / "largest", .sink = &stop});
  for (int i = 0; i < 40; ++i) {
    write_file(folder / std::to_string(i), noise(200'000, i));
    jobs.push_back({.path = folder / std::to_string(i), .kind = DigestKind::git_sha1});
  }
  const auto results = hash_all(jobs, {.jobs = 1, .kernel = "openssl"});
  for (const auto& result : results) EXPECT_FALSE(result.complete);
  EXPECT_LT(results[0].bytes, 20U << 20);
  EXPECT_EQ(results[7].digest.kind, DigestKind::git_sha1);
  EXPECT_FALSE(stop.finished);
}

TEST_F(InterruptedHash, StopsAReaderThatRunsAhead) {
  const TempDir folder;
  write_file(folder / "a", noise(20 << 20, 1));
  OnFirstBytes stop([] { set_interrupted(true); });
  EXPECT_FALSE(hash_all({{.path = folder / "a", .sink = &stop}}, {.jobs = 8})[0].complete);
}

TEST(Hasher, AnErrorOfASinkIsThatFilesResult) {
  const TempDir folder;
  write_file(folder / "bad", noise(100'000, 1));
  write_file(folder / "good", "abc");
  OnFirstBytes refuse([] { throw Error::input("not a tensor"); });
  const auto results = hash_all({{.path = folder / "bad", .sink = &refuse}, {.path = folder / "good"}});
  ASSERT_TRUE(results[0].error.has_value());
  EXPECT_EQ(results[0].error->message(), "not a tensor");
  EXPECT_TRUE(results[1].complete);
}

TEST(Hasher, OtherExceptionsEndTheRun) {
  const TempDir folder;
  std::vector<HashJob> jobs;
  for (int i = 0; i < 20; ++i) {
    write_file(folder / std::to_string(i), noise(100'000, i));
    jobs.push_back({.path = folder / std::to_string(i)});
  }
  const auto refuse = [](std::size_t, HashResult&&) { throw std::runtime_error("full"); };
  EXPECT_THROW(hash_files(jobs, {.jobs = 3}, refuse), std::runtime_error);
}

TEST(Hasher, NeedsFewDescriptorsForManyFiles) {
  const TempDir folder;
  std::vector<HashJob> jobs;
  for (int i = 0; i < 2000; ++i) {
    write_file(folder / std::to_string(i), std::to_string(i));
    jobs.push_back({.path = folder / std::to_string(i)});
  }
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit low{.rlim_cur = 80, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &low);
  const auto results = hash_all(jobs, {.jobs = 16});
  ::setrlimit(RLIMIT_NOFILE, &before);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    ASSERT_FALSE(results[i].error.has_value()) << results[i].error->line();
    EXPECT_EQ(results[i].digest.hex(), openssl(DigestKind::sha256, std::to_string(i)));
  }
}

}  // namespace
}  // namespace assay
