// The second level of the block pool: what comes back is what was kept, to the bit, or nothing.
#include "refimpl/block_store/disk_level.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>

#include "core/system/text.h"
#include "refimpl/engine/serving.h"
#include "refimpl/ops/kernel_set.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

struct DiskModel {
  explicit DiskModel(const std::string& name, Precision precision = Precision::f32)
      : weights(test::source_dir() / "data/models" / name, 1),
        ops(reference_kernels().make({precision}, 1)),
        model(make_model(weights, {})) {}
  Weights weights;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<LanguageModel> model;
};

// One block of two tokens, and a level that it goes to.
struct OneBlock {
  explicit OneBlock(std::uint64_t most_bytes = 1 << 20)
      : disk(std::make_unique<DiskLevel>(
            *m.ops, storage, DiskOptions{folder.path(), most_bytes, [this](const std::string& note) {
                                           notes.push_back(note);
                                         }})) {
    std::vector<double> numbers = storage.read(0, 1);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0.25 * static_cast<double>(i);
    storage.write(0, 1, numbers);
    content.parent = BlockHasher().root("a");
    content.tokens = {5, 7};
    content.key = BlockHasher().next(content.parent, content.tokens);
    rows = numbers;
  }
  fs::path file() const { return files_in(folder.path()).at(0); }

  test::TempDir folder;
  DiskModel m{"llama"};
  BlockStorage storage{*m.ops, m.model->cache_widths(), 2, 3};
  std::vector<std::string> notes;
  std::unique_ptr<DiskLevel> disk;
  BlockContent content;
  std::vector<double> rows;
};

TEST(DiskLevel, GivesBackWhatItWasGiven) {
  OneBlock block;
  EXPECT_FALSE(block.disk->has(0, block.content, false));
  block.disk->keep(0, 1, block.content);
  ASSERT_TRUE(block.disk->has(0, block.content, false));
  EXPECT_FALSE(block.disk->has(0, block.content, true));
  EXPECT_EQ(fs::file_size(block.file()), block.disk->file_bytes(0, false));
  const auto found = block.disk->fetch(0, block.content, false);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->rows, block.rows);
  EXPECT_TRUE(block.notes.empty());
}

TEST(DiskLevel, RefusesABlockOfWhichOneByteIsOther) {
  OneBlock block;
  block.disk->keep(0, 1, block.content);
  const fs::path file = block.file();
  const std::string good = test::read_file(file);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    test::write_file(file, bad);
    ASSERT_TRUE(block.disk->has(0, block.content, false));
    ASSERT_FALSE(block.disk->fetch(0, block.content, false).has_value()) << "byte " << i;
    ASSERT_FALSE(fs::exists(file));
    ASSERT_FALSE(block.disk->has(0, block.content, false));
    block.disk->keep(0, 1, block.content);
  }
  ASSERT_EQ(block.notes.size(), 1U);  // told once
  EXPECT_NE(block.notes[0].find("computed anew"), std::string::npos) << block.notes[0];
}

TEST(DiskLevel, RefusesWhatIsCutOrLongerOrAnothers) {
  OneBlock block;
  block.disk->keep(0, 1, block.content);
  const fs::path file = block.file();
  const std::string good = test::read_file(file);
  for (std::size_t size = 0; size <= good.size() + 1; ++size) {
    if (size == good.size()) continue;
    test::write_file(file, (good + "x").substr(0, size));
    ASSERT_FALSE(block.disk->fetch(0, block.content, false).has_value()) << size;
    block.disk->keep(0, 1, block.content);
  }
  // A sound block under another's name; of other tokens; of another place in the text.
  for (const int what : {0, 1, 2}) {
    BlockContent other = block.content;
    if (what == 0) other.key.bytes[3] ^= 1;
    if (what == 1) other.tokens[1] ^= 1;
    if (what == 2) other.number = 1;
    if (what == 0) {
      block.disk->keep(0, 1, other);
      fs::path theirs;
      for (const fs::path& path : files_in(block.folder.path())) theirs = path == file ? theirs : path;
      fs::copy_file(file, theirs, fs::copy_options::overwrite_existing);
    }
    EXPECT_FALSE(block.disk->fetch(0, other, false).has_value()) << what;
    block.disk->keep(0, 1, block.content);
  }
  EXPECT_TRUE(block.disk->fetch(0, block.content, false).has_value());
}

// Other layers, another precision: not even looked into.
TEST(DiskLevel, ABlockOfAnotherModelIsNone) {
  OneBlock block;
  block.disk->keep(0, 1, block.content);
  const DiskModel wide("llama", Precision::f64);
  const BlockStorage storage(*wide.ops, wide.model->cache_widths(), 2, 3);
  DiskLevel other(*wide.ops, storage, {block.folder.path()});
  EXPECT_FALSE(other.fetch(0, block.content, false).has_value());
}

TEST(DiskLevel, WhatLiesInItsFolderDoesNoHarm) {
  OneBlock block;
  block.disk->keep(0, 1, block.content);
  const fs::path file = block.file();
  const std::string good = test::read_file(file);
  const test::TempDir elsewhere;
  test::write_file(elsewhere / "precious", good);
  const auto again = [&] {  // as another process finds it
    return std::make_unique<DiskLevel>(*block.m.ops, block.storage,
                                       DiskOptions{block.folder.path(), 1 << 20});
  };

  fs::remove(file);
  fs::create_symlink(elsewhere / "precious", file);
  EXPECT_FALSE(again()->has(0, block.content, false));
  EXPECT_FALSE(
      block.disk->fetch(0, block.content, false).has_value());  // known from before, and no file by now
  fs::remove(file);
  fs::create_symlink(elsewhere / "written", file);
  again()->keep(0, 1, block.content);
  EXPECT_FALSE(fs::exists(elsewhere / "written"));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(file)));
  EXPECT_EQ(test::read_file(elsewhere / "precious"), good);

  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_FALSE(again()->has(0, block.content, false));
  fs::remove(file);
  fs::create_directory(file);
  test::write_file(file / "kept", "x");
  auto level = again();
  EXPECT_FALSE(level->has(0, block.content, false));
  level->keep(0, 1, block.content);  // cannot be written, and nothing else happens
  EXPECT_FALSE(level->folder().writing());
  EXPECT_TRUE(fs::exists(file / "kept"));
  fs::remove_all(file);

  test::write_file(file, "");
  fs::resize_file(file, std::uintmax_t{1} << 40);  // larger than all the room: gone when it is found
  level = again();
  EXPECT_FALSE(fs::exists(file));
  test::write_file(block.folder / "notes.txt", "mine");
  test::write_file(block.folder / "abc.block", "mine too");
  level = std::make_unique<DiskLevel>(*block.m.ops, block.storage, DiskOptions{block.folder.path(), 1});
  EXPECT_EQ(test::read_file(block.folder / "notes.txt"), "mine");
  EXPECT_EQ(test::read_file(block.folder / "abc.block"), "mine too");
}

TEST(DiskLevel, TheBlocksUsedLongestAgoGoFirstAlsoAfterARestart) {
  OneBlock block;
  const std::size_t size = block.disk->file_bytes(0, false);
  std::vector<BlockContent> contents(4, block.content);
  for (std::size_t i = 0; i < contents.size(); ++i) contents[i].key.bytes[0] = static_cast<std::uint8_t>(i);
  const DiskOptions three = {block.folder.path(), 3 * size + 1};
  {
    DiskLevel level(*block.m.ops, block.storage, three);
    for (std::size_t i = 0; i < 3; ++i) {
      level.keep(0, 1, contents[i]);
      const auto file = block.folder / (to_hex(contents[i].key.bytes) + "-0.block");
      fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(10 - i));
    }
    EXPECT_TRUE(level.fetch(0, contents[0], false).has_value());  // used now
  }
  DiskLevel level(*block.m.ops, block.storage, three);
  level.keep(0, 1, contents[3]);
  EXPECT_TRUE(level.has(0, contents[0], false));
  EXPECT_FALSE(level.has(0, contents[1], false));
  EXPECT_TRUE(level.has(0, contents[2], false));
  EXPECT_TRUE(level.has(0, contents[3], false));
  EXPECT_EQ(files_in(block.folder.path()).size(), 3U);
}

// Files that may grow no further stand for a full disk: root is not stopped by permissions.
TEST(DiskLevel, AFullDiskStopsTheLevelAndNothingElse) {
  OneBlock block;
  struct ::rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct ::rlimit small = before;
  small.rlim_cur = 100;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  block.disk->keep(0, 1, block.content);
  BlockContent other = block.content;
  other.key.bytes[0] ^= 1;
  block.disk->keep(0, 1, other);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(block.disk->folder().writing());
  EXPECT_FALSE(block.disk->has(0, block.content, false));
  EXPECT_TRUE(files_in(block.folder.path()).empty());
  ASSERT_EQ(block.notes.size(), 1U);
  EXPECT_NE(block.notes[0].find("no more are kept"), std::string::npos) << block.notes[0];
}

// Of each kind of cache: rows, latent rows, windows, states. What another process left is read, to the last block.
TEST(DiskLevel, AfterARestartAPromptIsReadFromIt) {
  for (const char* name : {"llama", "deepseek-v2", "gemma3", "qwen3-next", "mamba2", "lfm2"}) {
    for (const Precision precision : {Precision::f32, Precision::bf16, Precision::f64}) {
      const DiskModel m(name, precision);
      const test::TempDir folder;
      ServingRequest request;
      for (TokenId id = 0; id < 34; ++id) request.text.prompt.push_back((id * 7) % 90);
      request.text.max_new_tokens = 5;
      ServingParts parts;
      parts.outer = [&](Ops& ops, const BlockStorage& storage) {
        return std::make_unique<DiskLevel>(ops, storage, DiskOptions{folder.path()});
      };
      ServingOptions options{.cache = {.blocks = 20, .block_tokens = 4, .chunk = 4}, .poison = true};
      std::vector<std::vector<double>> rows[2];
      for (int life = 0; life < 2; ++life) {
        ServingEngine engine(*m.model, *m.ops, options, parts);
        engine.listen([&](std::size_t, std::size_t, TokenId, std::span<const double> row) {
          rows[life].emplace_back(row.begin(), row.end());
        });
        engine.submit(request);
        while (engine.step()) {
        }
        EXPECT_EQ(engine.counts().hit_tokens, life == 0 ? 0U : 32U) << name;
        EXPECT_EQ(engine.counts().loaded_blocks > 0, life == 1) << name;
        engine.keep_all();
      }
      EXPECT_EQ(rows[0], rows[1]) << name;
    }
  }
}

// What the pool evicts comes back from the second level while it runs.
TEST(DiskLevel, EvictedBlocksComeBack) {
  const DiskModel m("llama");
  const test::TempDir folder;
  ServingParts parts;
  parts.outer = [&](Ops& ops, const BlockStorage& storage) {
    return std::make_unique<DiskLevel>(ops, storage, DiskOptions{folder.path()});
  };
  ServingEngine engine(*m.model, *m.ops, {.cache = {.blocks = 4, .block_tokens = 4}, .poison = true}, parts);
  std::vector<TokenId> first;
  for (const TokenId begin : {1U, 2U, 1U}) {
    ServingRequest request;
    for (TokenId id = 0; id < 13; ++id) request.text.prompt.push_back(begin + 3 * id);
    request.text.max_new_tokens = 2;
    const std::size_t number = engine.submit(request);
    while (engine.step()) {
    }
    if (begin == 1 && first.empty()) first = engine.result(number).ids;
    if (begin == 1) {
      EXPECT_EQ(engine.result(number).ids, first);
    }
  }
  EXPECT_EQ(engine.counts().hit_tokens, 12U);
  EXPECT_EQ(engine.counts().loaded_blocks, 3U);
}

}  // namespace
}  // namespace assay
