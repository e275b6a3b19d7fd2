// One conversion by many ranks: the same bytes as by one process, whichever ranks die and are started again.
#include <fmt/format.h>

#include <future>
#include <numeric>

#include "convert/partial_folder.h"
#include "convert/share.h"
#include "core/system/sanitizer.h"
#include "tests/convert/convert_support.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using test::assay;
using test::contents;
using test::expect_ok;
using test::ProcessResult;
using test::TempDir;
using Command = std::vector<std::string>;

const fs::path kModel = test::source_dir() / "data/tinylm";
const fs::path kLlamaModel = test::source_dir() / "data/models/llama/model.safetensors";

TEST(DealBySize, IsFairAndTheSameForEverybody) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t i = 0; i < 200; ++i) sizes.push_back(1000 + i * 7919 % 5000);
  const auto owner = deal_by_size(sizes, 7);
  std::vector<std::uint64_t> held(7, 0);
  for (std::size_t i = 0; i < sizes.size(); ++i) held.at(owner[i]) += sizes[i];
  const auto [least, most] = std::minmax_element(held.begin(), held.end());
  EXPECT_LT(*most - *least, 2000u);  // a third of the largest
  EXPECT_EQ(owner, deal_by_size(sizes, 7));
  EXPECT_TRUE(deal_by_size({}, 3).empty());
}

struct Case {
  std::string out;
  Command options;
  fs::path in;
};

std::vector<Case> cases_to_share() {
  return {
      {"out", {"--to", "bf16", "--max-shard-size", "300KB"}, kModel},
      {"out", {"--to", "reblock=4x4", "--max-shard-size", "1MB"}, kModel},
      {"out.gguf", {"--to", "gguf:q8_0", "--tokenizer-pre", "none"}, kLlamaModel},
      {"out.gguf", {"--to", "gguf:f32", "--tokenizer-pre", "none", "--max-shard-size", "60KB"}, kLlamaModel}};
}

Command command_of(const Case& one, const fs::path& folder, const Command& more = {}) {
  Command words = {"convert", one.in.string(), (folder / one.out).string()};
  words.insert(words.end(), one.options.begin(), one.options.end());
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Command rank_of(const Case& one, const fs::path& folder, int rank, int ranks) {
  return command_of(one, folder, {"--share", "--rank", fmt::format("{}/{}", rank, ranks), "-j", "1"});
}

TEST(ConvertShare, ManyRanksWriteWhatOneDoes) {
  for (const Case& one : cases_to_share()) {
    SCOPED_TRACE(one.options[1]);
    const TempDir alone(test::memory_folder()), many(test::memory_folder());
    expect_ok(assay(command_of(one, alone.path())));
    std::vector<std::future<ProcessResult>> running;
    for (int rank = 0; rank < 6; ++rank)
      running.push_back(
          std::async(std::launch::async, [&, rank] { return assay(rank_of(one, many.path(), rank, 6)); }));
    int finished = 0;
    for (auto& result : running) {
      const ProcessResult ended = result.get();
      expect_ok(ended);
      finished += static_cast<int>(ended.out.find("OK: ") != std::string::npos);
    }
    EXPECT_EQ(finished, 1) << "one rank does the rest";
    EXPECT_TRUE(contents(many.path()) == contents(alone.path()));
    expect_ok(assay(rank_of(one, many.path(), 3, 6)));  // after all is done
    EXPECT_TRUE(contents(many.path()) == contents(alone.path()));
  }
}

TEST(ConvertShare, NothingHasTheFinalNameBeforeAllIsThere) {
  const Case one = cases_to_share()[0];
  const TempDir alone(test::memory_folder()), many(test::memory_folder());
  expect_ok(assay(command_of(one, alone.path())));
  for (const int rank : {2, 0}) {
    const ProcessResult result = assay(rank_of(one, many.path(), rank, 3));
    expect_ok(result);
    EXPECT_NE(result.out.find("left to other ranks"), std::string::npos) << result.out;
    EXPECT_FALSE(fs::exists(many / "out"));
  }
  const ProcessResult other =
      assay({"convert", kModel.string(), (many / "out").string(), "--to", "f32", "--share", "--rank", "1/3"});
  EXPECT_EQ(other.exit_code, 1) << "another conversion: " << other.out << other.err;
  expect_ok(assay(command_of(one, many.path(), {"--resume"})));  // one process goes on with what ranks left
  EXPECT_TRUE(contents(many.path()) == contents(alone.path()));
}

// Of two ranks the second is killed before each of its steps, among them those of the end, and started again.
TEST(ConvertShare, AnyRankMayDieAndBeStartedAgain) {
  if (kSanitized) GTEST_SKIP() << "SKIPPED: the sanitizer's own library has to come first";
  const fs::path library = test::plugin_dir().parent_path() / "preload/killing_steps.so";
  for (const std::size_t which : {1, 3}) {
    const Case one = cases_to_share()[which];
    const TempDir alone(test::memory_folder());
    expect_ok(assay(command_of(one, alone.path())));
    const auto whole = contents(alone.path());
    int steps = 0;
    for (int step = 1;; ++step) {
      SCOPED_TRACE(fmt::format("{} killed before step {}", one.options[1], step));
      ASSERT_LT(step, 400);
      const TempDir many(test::memory_folder());
      expect_ok(assay(rank_of(one, many.path(), 0, 2)));
      const int code =
          assay(rank_of(one, many.path(), 1, 2),
                {.directory = {},
                 .environment = {"LD_PRELOAD=" + library.string(), fmt::format("ASSAY_KILL_BEFORE={}", step)},
                 .input = {}})
              .exit_code;
      if (code == 0) break;
      ASSERT_EQ(code, 128 + 9);
      ++steps;
      expect_ok(assay(rank_of(one, many.path(), 1, 2)));
      ASSERT_TRUE(contents(many.path()) == whole);
    }
    EXPECT_GT(steps, 10);
  }
}

TEST(ConvertShare, WhatDoesNotGoWithItIsRefused) {
  const TempDir dir;
  const auto refused = [&](const Command& more) {
    Command words = {"convert", kModel.string(), (dir / "out").string(), "--to", "bf16"};
    words.insert(words.end(), more.begin(), more.end());
    const ProcessResult result = assay(words);
    EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
    EXPECT_FALSE(fs::exists(partial_folder(dir / "out")));
  };
  refused({"--share"});
  refused({"--share", "--rank", "2/2"});
  refused({"--share", "--rank", "0/2", "--overwrite"});
  refused({"--rank", "0/2"});
}

}  // namespace
}  // namespace assay
