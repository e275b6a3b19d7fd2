// Killed before every step by which files get their names, go, or come to disk (tests/preload/killing_steps):
// --resume goes on from each or finds the output whole, and nothing is ever under the name OUT but that.
#include <fmt/format.h>

#include "convert/partial_folder.h"
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

constexpr int kKilled = 128 + 9;
constexpr int kMostSteps = 400;
using test::kData;
const fs::path kLlama = kData / "models/llama/model.safetensors";

using Command = std::vector<std::string>;

Command with(Command command, const std::string& option) {
  command.push_back(option);
  return command;
}

ProcessResult killed_before(int step, const Command& command) {
  const fs::path library = test::plugin_dir().parent_path() / "preload/killing_steps.so";
  return assay(command, {.environment = {"LD_PRELOAD=" + library.string(),
                                         fmt::format("ASSAY_KILL_BEFORE={}", step)}});
}

// Files, and folders that hold none.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

void expect_refused(const ProcessResult& result, const std::string& why) {
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
}

// What `command_to(OUT)` writes, after a kill at each step. One at least has to fall between the last file's
// name and the end.
template <class CommandTo>
void expect_resumed_from_every_step(const CommandTo& command_to, const std::string& out) {
  const TempDir dir(test::memory_folder());
  fs::create_directory(dir / "whole");
  expect_ok(assay(command_to(dir / "whole" / out)));
  const auto whole = contents(dir / "whole");
  int found_whole = 0;
  for (int step = 1; step < kMostSteps; ++step) {
    SCOPED_TRACE(fmt::format("killed before step {}", step));
    const TempDir own(test::memory_folder());
    const Command command = command_to(own / out);
    const int code = killed_before(step, command).exit_code;
    if (code == 0) {
      EXPECT_GT(step, 5) << "there are more steps than that";
      EXPECT_GT(found_whole, 0);
      return;
    }
    ASSERT_EQ(code, kKilled);
    if (fs::exists(own / out)) expect_refused(assay(command), "exists already");
    const ProcessResult resumed = assay(with(command, "--resume"));
    ASSERT_EQ(resumed.exit_code, 0) << resumed.out << resumed.err;
    found_whole += static_cast<int>(resumed.out.find("an earlier run had finished") != std::string::npos);
    EXPECT_TRUE(contents(own.path()) == whole);
    EXPECT_EQ(names_in(own.path()), names_in(dir / "whole")) << "something was left beside it";
    if (step > 1) continue;  // the same lies there after every step
    expect_refused(assay(command), "exists already");
    const ProcessResult again = assay(with(command, "--resume"));
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_NE(again.out.find("an earlier run had finished"), std::string::npos) << again.out;
  }
  FAIL() << "never finished";
}

#define ASSAY_PRELOAD_OR_SKIP() \
  if (kSanitized) GTEST_SKIP() << "SKIPPED: the sanitizer's own library has to come first"

TEST(Killed, AGgufIsResumedFromEveryStep) {
  ASSAY_PRELOAD_OR_SKIP();
  const auto one = [](const fs::path& out) {
    return Command{"convert", kLlama, out, "--to", "gguf:q8_0", "--tokenizer-pre", "none"};
  };
  expect_resumed_from_every_step(one, "out.gguf");
}

TEST(Killed, AGgufInSeveralFilesIsResumedFromEveryStep) {
  ASSAY_PRELOAD_OR_SKIP();
  const auto several = [](const fs::path& out) {
    return Command{"convert",          kLlama, out, "--to", "gguf:f32", "--tokenizer-pre", "none",
                   "--max-shard-size", "60KB"};
  };
  expect_resumed_from_every_step(several, "out.gguf");
}

TEST(Killed, FoldersAreResumedFromEveryStep) {
  ASSAY_PRELOAD_OR_SKIP();
  const TempDir dir;
  expect_ok(assay({"convert", kLlama, dir / "in.gguf", "--to", "gguf:f16", "--tokenizer-pre", "none"}));
  const auto lossy = [](const fs::path& out) {
    return Command{"convert", kData / "tinylm", out, "--to", "bf16", "--max-shard-size", "1MB"};
  };
  const auto proved = [](const fs::path& out) {
    return Command{"convert", kData / "tinylm", out, "--to", "reblock=4x4", "--max-shard-size", "1MB"};
  };
  const auto imported = [&](const fs::path& out) {
    return Command{"convert", dir / "in.gguf", out, "--to", "f32"};
  };
  expect_resumed_from_every_step(lossy, "out");
  expect_resumed_from_every_step(proved, "out");
  expect_resumed_from_every_step(imported, "out");
}

// What was there stays until what replaces it is whole, and nothing of it after that.
TEST(Killed, OverwritingLeavesTheOldOrTheNew) {
  ASSAY_PRELOAD_OR_SKIP();
  const TempDir dir(test::memory_folder());
  const auto to = [](const std::string& type, const fs::path& out) {
    return Command{"convert", kLlama, out, "--to", type};
  };
  for (const char* type : {"bf16", "f32"}) {
    fs::create_directory(dir / type);
    expect_ok(assay(to(type, dir / type / "out")));
  }
  const auto before = contents(dir / "bf16" / "out"), after = contents(dir / "f32" / "out");
  for (int step = 1; step < kMostSteps; ++step) {
    SCOPED_TRACE(fmt::format("killed before step {}", step));
    const TempDir own(test::memory_folder());
    expect_ok(assay(to("bf16", own / "out")));
    if (killed_before(step, with(to("f32", own / "out"), "--overwrite")).exit_code == 0) return;
    if (fs::exists(own / "out")) {
      const auto there = contents(own / "out");
      EXPECT_TRUE(there == before || there == after);
    }
    const ProcessResult resumed = assay(with(to("f32", own / "out"), "--resume"));
    if (resumed.exit_code != 0) {
      expect_refused(resumed, "exists already");
      expect_ok(assay(with(to("f32", own / "out"), "--overwrite")));
    }
    EXPECT_TRUE(contents(own.path()) == contents(dir / "f32"));
    EXPECT_EQ(names_in(own.path()), std::vector<std::string>{"out"});
  }
  FAIL() << "never finished";
}

// A record of a conversion that is not this one, or of an output that is no longer there, says nothing.
TEST(Killed, ARecordIsHeldAgainstTheOutput) {
  ASSAY_PRELOAD_OR_SKIP();
  const auto command = [](const fs::path& out, const char* type) {
    return Command{"convert", kLlama, out, "--to", std::string("gguf:") + type, "--tokenizer-pre", "none"};
  };
  const TempDir whole;
  expect_ok(assay(command(whole / "out.gguf", "q8_0")));
  for (const char* change : {"gone", "damaged", "another SPEC"}) {
    SCOPED_TRACE(change);
    const TempDir own;
    const fs::path out = own / "out.gguf";
    for (int step = 1; step < kMostSteps; ++step) {
      fs::remove_all(partial_folder(out));
      fs::remove(out);
      if (killed_before(step, command(out, "q8_0")).exit_code == 0) FAIL() << "no step leaves a record";
      if (fs::exists(publication_record(out))) break;
    }
    if (change == std::string("gone")) {
      fs::remove(out);
      expect_ok(assay(with(command(out, "q8_0"), "--resume")));
      EXPECT_TRUE(contents(own.path()) == contents(whole.path()));
    } else if (change == std::string("damaged")) {
      std::string bytes = test::read_file(out);
      bytes.back() = static_cast<char>(bytes.back() ^ 1);
      test::write_file(out, bytes);
      expect_refused(assay(with(command(out, "q8_0"), "--resume")), "exists already");
      EXPECT_TRUE(test::read_file(out) == bytes);
    } else {
      expect_refused(assay(with(command(out, "f16"), "--resume")), "of another conversion");
      EXPECT_TRUE(test::read_file(out) == test::read_file(whole / "out.gguf"));
    }
  }
}

}  // namespace
}  // namespace assay
