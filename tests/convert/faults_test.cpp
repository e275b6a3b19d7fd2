// What goes wrong while a conversion runs: kills, full disks, sources that change or end, damaged finished
// files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <thread>

#include "convert/convert.h"
#include "core/system/error.h"
#include "tests/convert/convert_support.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using test::assay;
using test::contents;
using test::expect_ok;
using test::TempDir;

using test::kData;

// tinylm in some twenty files, so that there is much to be interrupted between.
std::vector<std::string> conversion(const fs::path& out) {
  return {"convert", kData / "tinylm", out, "--to", "bf16", "--max-shard-size", "200KB"};
}

std::vector<std::string> with(std::vector<std::string> command, const std::string& option) {
  command.push_back(option);
  return command;
}

std::vector<std::string> prefixed(std::vector<std::string> prefix,
                                  const std::vector<std::string>& arguments) {
  prefix.push_back(test::assay_binary());
  prefix.insert(prefix.end(), arguments.begin(), arguments.end());
  return prefix;
}

TEST(Faults, KilledAHundredTimesItResumesToTheSameBytes) {
  ASSAY_PROGRAM_OR_SKIP("timeout");
  const TempDir dir(test::memory_folder());
  const auto start = std::chrono::steady_clock::now();
  expect_ok(assay(conversion(dir / "whole")));
  const std::chrono::duration<double> takes = std::chrono::steady_clock::now() - start;
  const auto whole = contents(dir / "whole");
  for (int kill = 0; kill < 100; ++kill) {
    const fs::path out = dir / std::to_string(kill);
    const double seconds = takes.count() * (kill + 1) / 100;
    test::run(prefixed({"timeout", "-s", "KILL", fmt::format("{:.4f}", seconds)}, conversion(out)));
    if (!fs::exists(out)) expect_ok(assay(with(conversion(out), "--resume")));
    ASSERT_EQ(contents(out), whole) << "killed after " << seconds << " s";
    fs::remove_all(out);
  }
}

// Every other kind of output: codes beside scales, whole-tensor scales found in a pass of their own, one file
// of tensors made anew, a folder for each rank.
std::vector<std::vector<std::string>> other_conversions(const fs::path& out) {
  const fs::path plain = kData / "tinylm-bf16", llama = kData / "models/llama/model.safetensors";
  return {
      {"convert", plain, out, "--to", "mxfp4", "--include", "o_proj|q_a_proj", "--max-shard-size", "200KB"},
      {"convert", plain, out, "--to", "nvfp4", "--include", "o_proj|q_a_proj", "--max-shard-size", "200KB"},
      {"convert", plain, out, "--to", "int4:channel", "--max-shard-size", "200KB"},
      {"convert", plain, out, "--to", "fp8:tensor", "--max-shard-size", "200KB"},
      {"convert", kData / "tinylm", out, "--to", "reblock=4x4", "--tp", "2"},
      {"convert", llama, out, "--tp", "2", "--max-shard-size", "20KB"}};
}

TEST(Faults, EveryKindOfOutputIsResumedToTheSameBytes) {
  ASSAY_PROGRAM_OR_SKIP("timeout");
  const TempDir dir(test::memory_folder());
  const std::size_t kinds = other_conversions("").size();
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    const fs::path whole = dir / fmt::format("whole-{}", kind);
    const auto start = std::chrono::steady_clock::now();
    expect_ok(assay(other_conversions(whole)[kind]));
    const std::chrono::duration<double> takes = std::chrono::steady_clock::now() - start;
    const auto expected = contents(whole);
    for (int kill = 1; kill <= 8; ++kill) {
      const fs::path out = dir / fmt::format("{}-{}", kind, kill);
      const auto command = other_conversions(out)[kind];
      test::run(
          prefixed({"timeout", "-s", "KILL", fmt::format("{:.4f}", takes.count() * kill / 9)}, command));
      if (!fs::exists(out)) expect_ok(assay(with(command, "--resume")));
      ASSERT_EQ(contents(out), expected) << kind << ", kill " << kill;
      EXPECT_FALSE(fs::exists(partial_folder(out)));
      fs::remove_all(out);
    }
  }
}

// ulimit -f counts KiB: a file of more than 128 KiB cannot be written.
constexpr const char* kSmallFiles = R"(trap '' XFSZ; ulimit -f 128; exec "$0" "$@")";

TEST(Faults, AWriteThatFailsLeavesNothingUnderTheFinalNameAndResumes) {
  ASSAY_PROGRAM_OR_SKIP("bash");
  const TempDir dir;
  const auto stopped = test::run(prefixed({"bash", "-c", kSmallFiles}, conversion(dir / "out")));
  EXPECT_EQ(stopped.exit_code, 2) << stopped.out << stopped.err;
  EXPECT_NE(stopped.err.find("too large"), std::string::npos) << stopped.err;
  EXPECT_FALSE(fs::exists(dir / "out"));
  expect_ok(assay(with(conversion(dir / "out"), "--resume")));
  expect_ok(assay(conversion(dir / "whole")));
  EXPECT_EQ(contents(dir / "out"), contents(dir / "whole"));
}

// A file system of few files: the bytes are free, and creating one more still fails with ENOSPC.
class SmallDisk {
 public:
  explicit SmallDisk(fs::path at) : at_(std::move(at)) {
    fs::create_directory(at_);
    mounted =
        test::run({"mount", "-t", "tmpfs", "-o", "size=512m,nr_inodes=12", "tmpfs", at_}).exit_code == 0;
  }
  ~SmallDisk() {
    if (mounted) test::run({"umount", at_});
  }
  void enlarge() { test::run({"mount", "-o", "remount,nr_inodes=1000", at_}); }
  bool mounted = false;

 private:
  fs::path at_;
};

TEST(Faults, AFullDisk) {
  ASSAY_PROGRAM_OR_SKIP("mount");
  const TempDir dir;
  SmallDisk disk(dir / "disk");
  if (!disk.mounted) GTEST_SKIP() << "mounting a tmpfs needs root";
  const auto stopped = assay(conversion(dir / "disk/out"));
  EXPECT_EQ(stopped.exit_code, 2) << stopped.out << stopped.err;
  EXPECT_NE(stopped.err.find("No space left on device"), std::string::npos) << stopped.err;
  EXPECT_FALSE(fs::exists(dir / "disk/out"));
  disk.enlarge();
  const auto resumed = assay(with(conversion(dir / "disk/out"), "--resume"));
  expect_ok(resumed);
  EXPECT_NE(resumed.out.find("files were finished already"), std::string::npos) << resumed.out;
  expect_ok(assay(conversion(dir / "whole")));
  EXPECT_EQ(contents(dir / "disk/out"), contents(dir / "whole"));
}

TEST(Faults, AFinishedFileThatWasDamagedIsMadeAgain) {
  ASSAY_PROGRAM_OR_SKIP("mount");
  const TempDir dir;
  SmallDisk disk(dir / "disk");
  if (!disk.mounted) GTEST_SKIP() << "mounting a tmpfs needs root";
  const fs::path out = dir / "disk/out", partial = dir / "disk/.out.assay-partial";
  EXPECT_EQ(assay(conversion(out)).exit_code, 2);
  // One byte in the middle of the first finished file, its size unchanged.
  fs::path finished;
  for (const auto& entry : fs::directory_iterator(partial))
    if (entry.path().extension() == ".safetensors" && (finished.empty() || entry.path() < finished))
      finished = entry.path();
  ASSERT_FALSE(finished.empty());
  std::string bytes = test::read_file(finished);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  test::write_file(finished, bytes);
  disk.enlarge();
  expect_ok(assay(with(conversion(out), "--resume")));
  expect_ok(assay(conversion(dir / "whole")));
  EXPECT_EQ(contents(out), contents(dir / "whole"));
}

// --- a source that changes between plan and reading, or is shorter than its header says when it is read

struct Copied {
  TempDir dir;
  fs::path in, out;
  ConvertOptions options;
  Copied() : in(dir / "in"), out(dir / "out") {
    fs::copy(kData / "tinylm", in);
    options.to = "bf16";
  }
  void expect_refused(const std::function<void(const fs::path&)>& change, const std::string& words) {
    const ConversionPlan plan = make_plan(in, options);
    ASSERT_TRUE(plan.feasible());
    change(in / plan.checkpoint.files.back().name);
    try {
      convert(out, plan, options, ProgressMode::never);
      FAIL() << "nothing was noticed";
    } catch (const Error& error) {
      EXPECT_NE(error.line().find(words), std::string::npos) << error.line();
      EXPECT_NE(error.line().find(plan.checkpoint.files.back().name), std::string::npos) << error.line();
    }
    EXPECT_FALSE(fs::exists(out));
  }
};

TEST(Faults, ASourceCutOffAfterItsHeaderWasRead) {
  Copied copied;
  copied.expect_refused([](const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); },
                        "changed");
}

TEST(Faults, ASourceWrittenAnewUnderTheSameSize) {
  Copied copied;
  copied.expect_refused(
      [](const fs::path& file) {
        std::string bytes = test::read_file(file);
        bytes.back() = static_cast<char>(bytes.back() ^ 1);
        test::write_file(file, bytes);
      },
      "changed");
}

// Written into by another while many of its tensors are still to be read.
TEST(Faults, ASourceThatChangesWhileItIsRead) {
  Copied copied;
  copied.options.max_shard_size = 20'000;
  const fs::path source = copied.in / "model-00001-of-000003.safetensors";
  std::jthread other([&](const std::stop_token& stop) {
    const auto finished = [&] {
      std::error_code error;
      for (const auto& entry : fs::directory_iterator(partial_folder(copied.out), error))
        if (entry.path().extension() == ".safetensors") return true;
      return false;
    };
    while (!stop.stop_requested() && !finished()) std::this_thread::yield();
    std::fstream file(source, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('x');
  });
  const ConversionPlan plan = make_plan(copied.in, copied.options);
  ASSERT_GT(plan.shards.size(), 50u);
  try {
    convert(copied.out, plan, copied.options, ProgressMode::never);
    FAIL() << "nothing was noticed";
  } catch (const Error& error) {
    EXPECT_NE(error.line().find("changed while it was read"), std::string::npos) << error.line();
    EXPECT_NE(error.line().find(source.filename().string()), std::string::npos) << error.line();
  }
  EXPECT_FALSE(fs::exists(copied.out));
}

TEST(Faults, AnotherSourceIsNotResumedInto) {
  ASSAY_PROGRAM_OR_SKIP("bash");
  Copied copied;
  const auto stopped =
      test::run(prefixed({"bash", "-c", kSmallFiles},
                         {"convert", copied.in, copied.out, "--to", "bf16", "--max-shard-size", "200KB"}));
  EXPECT_EQ(stopped.exit_code, 2);
  fs::last_write_time(copied.in / "model-00001-of-000003.safetensors", fs::file_time_type::clock::now());
  const auto resumed =
      assay({"convert", copied.in, copied.out, "--to", "bf16", "--max-shard-size", "200KB", "--resume"});
  EXPECT_EQ(resumed.exit_code, 1) << resumed.out << resumed.err;
  EXPECT_NE(resumed.err.find("its source has changed"), std::string::npos) << resumed.err;
}

}  // namespace
}  // namespace assay
