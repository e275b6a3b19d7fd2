// Plugins: right kernels pass as ours do, wrong ones fail by the check that explains them, and whatever they
// do to their process ends up as one line of ours.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <random>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/report.h"
#include "core/system/sanitizer.h"
#include "kernels/harness/survey.h"
#include "kernels/plugin/host.h"
#include "kernels/plugin/message.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::ProcessOptions;
using test::ProcessResult;

std::string library(const std::string& name) {
  return (test::plugin_dir() / (name + ".so")).string();
}

PluginLimits limits(double seconds = 60) {
  return {.seconds = seconds, .program = test::assay_binary()};
}

std::vector<CaseResult> survey(const std::string& plugin, SurveyRequest request, double seconds = 60) {
  Registry registry;
  add_plugins(registry, {library(plugin)}, limits(seconds));
  return run_survey(registry, request);
}

std::string worst(const std::vector<CaseResult>& results) {
  for (const CaseResult& r : results) {
    if (r.status == CaseStatus::failed || r.status == CaseStatus::mistrusted)
      return r.kernel + " " + r.id + ": " + r.check + ": " + r.detail;
  }
  return "";
}

// --- what is right

TEST(Plugin, ARightKernelPassesLikeOurs) {
  const auto results = survey("right", {.every = 7, .jobs = 2});
  EXPECT_EQ(worst(results), "");
  std::map<std::string, int> passed;
  Kept batch = Kept::untested, layout = Kept::untested;
  for (const CaseResult& r : results) {
    passed[CaseId::parse(r.id).form()] += r.status == CaseStatus::passed ? 1 : 0;
    if (r.properties.batch_invariant != Kept::untested) batch = r.properties.batch_invariant;
    if (r.properties.layout_invariant != Kept::untested) layout = r.properties.layout_invariant;
  }
  for (const char* form : {"F32", "BF16", "F16", "FP8_128x128", "INT8_CHANNEL", "Q8_0"})
    EXPECT_GT(passed[form], 0) << form;
  EXPECT_EQ(passed["Q4_K"], 0);  // refused
  EXPECT_EQ(batch, Kept::yes);
  EXPECT_EQ(layout, Kept::yes);
}

// Written from kernels/plugin.h alone: what it says of each call is all there is to know.
TEST(Plugin, EveryOperationIsLentAsTheHeaderSays) {
  const auto results = survey("every", {.every = 5, .jobs = 2});
  EXPECT_EQ(worst(results), "");
  std::map<std::string, int> passed;
  for (const CaseResult& r : results)
    passed[CaseId::parse(r.id).op()] += r.status == CaseStatus::passed ? 1 : 0;
  Registry().for_each_op([&]<class Call>(const std::vector<Kernel<Call>>&) {
    const std::string op(Call::kOp);
    if (op == "linear" || kIsListed<Call, CallsOfOurOwn>) return;
    EXPECT_GT(passed[op], 0) << op;
  });
}

TEST(Plugin, BothRunInProcessesThatAreGoneAfterwards) {
  survey("right", {.cases = {"linear:F32:m=3:k=7:n=5"}});
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Plugin, IsTimedWithoutTheLoan) {
  Registry registry;
  add_plugins(registry, {library("right")}, limits());
  const RemoteKernel& kernel = *registry.of<LinearCall>().front().remote;
  const auto seconds =
      const_cast<RemoteKernel&>(kernel).time(CaseId::parse("linear:F32:m=3:k=64:n=64"), 1, 0.01);
  ASSERT_TRUE(seconds.has_value());
  EXPECT_GT(*seconds, 0);
  EXPECT_FALSE(const_cast<RemoteKernel&>(kernel).time(CaseId::parse("linear:Q4_K:m=1:k=256:n=8"), 1, 0.01));
}

// --- what is wrong

struct Wrong {
  const char* kernel;
  const char* check;
  const char* detail;  // part of it
};
void PrintTo(const Wrong& wrong, std::ostream* out) {
  *out << wrong.kernel;
}
class WrongKernel : public testing::TestWithParam<Wrong> {};

constexpr const char* kSquareScales = "linear:INT8_128x128:m=7:k=383:n=257:in=zero:seed=1";

TEST_P(WrongKernel, FailsByTheCheckThatExplainsIt) {
  const Wrong& w = GetParam();
  const bool hangs = std::string_view(w.check) == "timeout";
  const auto results = survey(
      "wrong", {.kernel = std::string("\\.") + w.kernel + "$", .cases = {kSquareScales}}, hangs ? 1 : 60);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].status, CaseStatus::failed);
  EXPECT_EQ(results[0].check, w.check) << results[0].detail;
  EXPECT_NE(results[0].detail.find(w.detail), std::string::npos) << results[0].detail;
}

// What the cases of other faults cannot show, those that are never thinned out do.
TEST(Plugin, FaultsThatNeedCasesOfTheirOwnFallInTheGrid) {
  for (const char* kernel : {"flushes-inside", "ignores-major"}) {
    const auto results =
        survey("wrong", {.kernel = fmt::format("\\.{}$", kernel), .every = 1'000'000, .jobs = 2});
    EXPECT_NE(worst(results), "") << kernel;
    EXPECT_GT(std::count_if(results.begin(), results.end(),
                            [](const CaseResult& r) { return r.status == CaseStatus::passed; }),
              0)
        << kernel;
  }
}

INSTANTIATE_TEST_SUITE_P(
    , WrongKernel,
    testing::Values(
        Wrong{"tail", "budget", "y, element"}, Wrong{"transposed-scale", "budget", "y, element"},
        Wrong{"null-pointer", "crash", "killed by SIGSEGV, at address 0"},
        Wrong{"abort", "crash", "killed by SIGABRT; its last words: wrong.c: assertion 'fits' failed"},
        Wrong{"exit", "exit", "exit code 7"}, Wrong{"hang", "timeout", "no answer within 1 s"},
        Wrong{"stack", "crash", "beyond the end of the stack"},
        Wrong{"behind", "canaries", "behind a 7 × 257 matrix"},
        Wrong{"padding", "canaries", "the padding behind row 0"},
        Wrong{"input", "crash", "in an argument, which may only be read"},
        Wrong{"same-value", "crash", "in an argument, which may only be read"},
        Wrong{"weight", "crash", "in an argument, which may only be read"},
        Wrong{"stale-weight", "stale", "after other numbers at the same addresses"},
        Wrong{"stale-input", "stale", "after other numbers at the same addresses"},
        Wrong{"threads", "leftovers", "threads behind"}, Wrong{"child", "leftovers", "a child process"},
        Wrong{"reads-beyond", "crash", "behind the end of memory that was operand to it"},
        Wrong{"reads-padding", "layout", "nan"},
        Wrong{"says-no", "error", "the kernel says: no workspace for 7 x 257"},
        Wrong{"flushes", "canaries", "subnormal numbers became zero"}, Wrong{"noisy", "answer", "malformed"},
        Wrong{"forgets", "pattern", "nan against"}, Wrong{"chance", "repeat", "run again"}),
    [](const testing::TestParamInfo<Wrong>& info) {
      std::string name = info.param.kernel;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(Plugin, AnExaminationGoesOnAfterACrash) {
  const auto results = survey("wrong", {.kernel = "null-pointer|tail|exit",
                                        .cases = {"linear:F32:m=3:k=7:n=5", "linear:F32:m=3:k=8:n=5"}});
  ASSERT_EQ(results.size(), 6u);
  const auto check = [&](std::size_t i) { return results[i].kernel + " " + results[i].check; };
  EXPECT_EQ(check(0), "wrong.tail budget");
  EXPECT_EQ(check(1), "wrong.null-pointer crash");
  EXPECT_EQ(check(2), "wrong.exit exit");
  EXPECT_EQ(check(3), "wrong.tail ");  // an even number of inputs
  EXPECT_EQ(results[3].status, CaseStatus::passed);
  EXPECT_EQ(check(4), "wrong.null-pointer crash");
  EXPECT_EQ(check(5), "wrong.exit exit");
}

TEST(Plugin, WritingAfterReturningIsFound) {
  SurveyRequest request = {.kernel = "late", .cases = {}};
  for (int m = 2; m < 10; ++m) request.cases.push_back("linear:F32:k=99:n=35:m=" + std::to_string(m));
  const auto results = survey("wrong", request);
  EXPECT_TRUE(std::any_of(results.begin(), results.end(), [](const CaseResult& r) {
    return r.check == "canaries" &&
           r.detail.ends_with("memory of an earlier call was written after the kernel had returned");
  })) << worst(results);
}

// Nobody is left to stop a kernel that hangs: it goes with us.
TEST(Plugin, NoProcessOutlivesOurs) {
  const test::TempDir folder;
  const fs::path copy = folder / "wrong.so";
  fs::copy_file(library("wrong"), copy);
  const std::string command = fmt::format(
      "'{}' compare kernels --plugin {} --kernel hang --case {} & sleep 1; kill -9 $!; wait $!; sleep 1; "
      "! pgrep -f 'plugin-worker {}'",
      test::assay_binary(), copy.string(), kSquareScales, copy.string());
  test::write_file(folder / "kill.sh", command);  // whose own command line does not say plugin-worker
  const ProcessResult r = test::run({"bash", (folder / "kill.sh").string()});
  EXPECT_EQ(r.exit_code, 0) << r.out << r.err;
}

TEST(Plugin, AKernelThatHangsIsGivenUp) {
  std::vector<std::string> cases;
  for (int k = 1; k <= 6; ++k) cases.push_back("linear:F32:m=3:n=5:k=" + std::to_string(k));
  const auto results = survey("wrong", {.kernel = "hang", .cases = cases}, 0.3);
  ASSERT_EQ(results.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(results[i].check, "timeout");
    EXPECT_EQ(results[i].detail.starts_with("not run"), i >= 3) << results[i].detail;
    // What is not run is not judged either: the kernel might have refused it.
    EXPECT_EQ(results[i].status, i >= 3 ? CaseStatus::skipped : CaseStatus::failed);
  }
}

TEST(Plugin, MemoryIsBounded) {
  if (kSanitized) GTEST_SKIP() << "SKIPPED: sanitizers set aside more memory than any bound";
  const ProcessResult r = test::assay({"compare", "kernels", "--plugin", library("wrong"), "--kernel", "hog",
                                       "--plugin-memory", "300MiB", "--case", kSquareScales});
  EXPECT_EQ(r.exit_code, 1) << r.err;
  EXPECT_NE(r.out.find("crash: killed by SIGABRT, with its memory used up"), std::string::npos) << r.out;
}

// --- bfloat16 and devices

TEST(Plugin, BFloat16IsHandedOverAsSuch) {
  const std::string id = "linear:BF16:act=bf16:m=5:k=33:n=31:in=zero:seed=1";
  const auto results = survey("staged", {.device = Device::cpu, .cases = {id}});
  std::map<std::string, std::string> checks;
  for (const CaseResult& r : results) checks[r.kernel] = std::string(name(r.status)) + " " + r.detail;
  EXPECT_EQ(checks["staged.bf16"], "PASSED ");
  EXPECT_EQ(checks["staged.bf16-behind"], "FAILED memory behind a 5 × 31 matrix was written");
  EXPECT_EQ(checks["staged.bf16-between"], "FAILED memory between rows of a 5 × 31 matrix was written");
  EXPECT_EQ(checks["staged.bf16-input"], "FAILED killed by SIGSEGV, in an argument, which may only be read");
}

ProcessResult with_fake_device(const std::string& devices, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"compare", "kernels", "--plugin", library("staged")});
  return test::assay(std::move(arguments),
                     {.environment = {"LD_LIBRARY_PATH=" + (test::plugin_dir() / "fake").string(),
                                      "FAKE_CUDA_DEVICES=" + devices}});
}

TEST(Plugin, OperandsOfADeviceLieThere) {
  const ProcessResult r =
      with_fake_device("1", {"--device", "cuda", "--case", "linear:BF16:m=5:k=31:n=33:in=zero:seed=1",
                             "--case", "linear:BF16:act=bf16:m=5:k=33:n=31:in=zero:seed=1"});
  EXPECT_EQ(r.exit_code, 1) << r.err;
  for (const char* line :
       {"PASSED staged.cuda linear", "PASSED staged.cuda-bf16 linear",
        "canaries: memory behind a 5 × 33 matrix", "canaries: memory between rows of a 5 × 33",
        "canaries: a 5 × 31 matrix that is an argument",
        "device: the device reports: an illegal memory access was encountered"})
    EXPECT_NE(r.out.find(line), std::string::npos) << line << "\n" << r.out;
}

TEST(Plugin, WithoutADeviceItsKernelsAreRefusedNotSkipped) {
  const ProcessResult r = with_fake_device("0", {"--op", "linear"});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_NE(r.err.find("staged.cuda is a kernel for CUDA, and there is no CUDA device here"),
            std::string::npos)
      << r.err;
  EXPECT_EQ(with_fake_device("0", {"--list"}).exit_code, 0);
}

TEST(Plugin, TheCudaExampleLoads) {
  if (!fs::exists(library("on_device"))) GTEST_SKIP() << "SKIPPED: no nvcc";
  const ProcessResult list = test::assay({"compare", "kernels", "--plugin", library("on_device"), "--list"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_NE(list.out.find("on_device.bfloat16"), std::string::npos) << list.out;
  if (!fs::exists("/dev/nvidia0")) return;
  const ProcessResult r = test::assay({"compare", "kernels", "--plugin", library("on_device")});
  EXPECT_EQ(r.exit_code, 1) << r.err;
  EXPECT_EQ(r.out.find("FAILED on_device.float32"), std::string::npos) << r.out;
  EXPECT_EQ(r.out.find("FAILED on_device.bfloat16"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("FAILED on_device.tail"), std::string::npos) << r.out;
}

// --- what is no plugin

TEST(Plugin, WhatContradictsTheHeaderIsOneLineAndExitCode2) {
  const std::map<int, std::string> said = {{1, "exports no symbol 'assay_plugin'"},
                                           {2, "made for ABI 2, this assay for 1"},
                                           {3, "assay_plugin_info: its size says 8 bytes"},
                                           {4, "kernel 0: its size says 16 bytes"},
                                           {5, "kernel 'one': its callback 'takes' is null"},
                                           {6, "kernel 'two': its callback 'run' is null"},
                                           {7, "two kernels for linear are called 'malformed.one'"},
                                           {8, "'has a blank' is no name"},
                                           {9, "the plugin's name 'cpu' is none"},
                                           {10, "there is no operation 4711"},
                                           {11, "there is no device 9"},
                                           {12, "activations are"},
                                           {13, "accumulator_roundoff 1 is not within"},
                                           {14, "has no kernels"},
                                           {15, "kernel 1: a null pointer"},
                                           {16, "promises what there is no word for"},
                                           {17, "the plugin's name '' is none"},
                                           {18, "nothing for ABI 1"},
                                           {19, "while it is loaded: killed by SIGABRT"},
                                           {20, "while it is loaded: no answer within 5 s"},
                                           {21, "while it is loaded: it ended its process with exit code 0"},
                                           {22, "while it is loaded: killed by SIGSEGV"},
                                           {23, "claims 18446744073709551615 kernels"},
                                           {24, "is not within"}};
  for (const auto& [fault, line] : said) {
    const std::string file = library("malformed_" + std::to_string(fault));
    const ProcessResult r = test::assay({"compare", "kernels", "--plugin", file, "--plugin-timeout", "1"});
    EXPECT_EQ(r.exit_code, 2) << fault;
    EXPECT_NE(r.err.find(line), std::string::npos) << fault << ": " << r.err;
    EXPECT_TRUE(r.err.starts_with("assay: " + file)) << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    EXPECT_EQ(r.out, "");
  }
}

TEST(Plugin, FilesThatAreNoLibraryAreOneLineAndExitCode2) {
  const test::TempDir folder;
  test::write_file(folder / "text.so", "not a library\n");
  test::write_file(folder / "cut.so", test::read_file(library("right")).substr(0, 5000));
  test::write_file(folder / "empty.so", "");
  for (const char* file : {"text.so", "cut.so", "empty.so", "absent.so"}) {
    const ProcessResult r = test::assay({"compare", "kernels", "--plugin", (folder / file).string()});
    EXPECT_EQ(r.exit_code, 2) << file;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  }
  const ProcessResult of_folder = test::assay({"compare", "kernels", "--plugin", folder.path().string()});
  EXPECT_EQ(of_folder.exit_code, 2);
  EXPECT_NE(of_folder.err.find("not a file"), std::string::npos) << of_folder.err;
  const ProcessResult twice =
      test::assay({"compare", "kernels", "--plugin", library("right"), "--plugin", library("right")});
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_NE(twice.err.find("its name is 'right', as is that of"), std::string::npos) << twice.err;
  EXPECT_EQ(test::assay({"plugin-worker", library("right")}).exit_code, 2);
}

// --- the program

TEST(Plugin, AFailureNamesItsReproducer) {
  const ProcessResult r = test::assay({"compare", "kernels", "--plugin", library("wrong"), "--kernel", "tail",
                                       "--case", kSquareScales, "--json", "-"});
  EXPECT_EQ(r.exit_code, 1) << r.err;
  const Json document = Json::parse(r.out);
  const Json& found = document.at("cases").at(0);
  EXPECT_EQ(found.at("plugin"), library("wrong"));
  const std::string line = found.at("reproducer");
  const std::string program = "assay ";
  ASSERT_TRUE(line.starts_with(program));
  const ProcessResult again =
      test::run({"bash", "-c", "'" + test::assay_binary() + "' " + line.substr(program.size())});
  EXPECT_EQ(again.exit_code, 1) << again.err;
  EXPECT_NE(again.out.find("1 failed"), std::string::npos) << again.out;
}

// docs/plugin.md, word for word: the C file it shows, and its commands in their order.
TEST(Plugin, ThePageWorks) {
  ASSAY_PROGRAM_OR_SKIP("cc");
  const std::string page = test::read_file(test::source_dir() / "docs/plugin.md");
  const test::TempDir folder;
  std::string script = "set -e\n";
  for (std::size_t at = page.find("```"); at != std::string::npos;) {
    const std::size_t begin = page.find('\n', at) + 1, end = page.find("```", begin);
    const std::string language = page.substr(at + 3, begin - at - 4), body = page.substr(begin, end - begin);
    if (language == "c") test::write_file(folder / "mine.c", body);
    if (language == "sh") script += body;
    at = page.find("```", end + 3);
  }
  ASSERT_NE(script.find("assay gate"), std::string::npos);
  const std::string path = test::assay_binary().substr(0, test::assay_binary().rfind('/'));
  const ProcessResult r = test::run({"bash", "-c", "export PATH='" + path + "':$PATH\n" + script},
                                    {.directory = folder.path(),
                                     .environment = {"CPATH=" + (test::plugin_dir() / "../include").string()},
                                     .timeout_seconds = 280});
  EXPECT_EQ(r.exit_code, 0) << r.out << r.err;
  EXPECT_NE(r.out.find("122 passed, 0 failed"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("FAILED mine.norm rms_norm:"), std::string::npos) << r.out;
}

// --- the two processes' talk, as a hostile one would have it

TEST(PluginMessage, ComesBackAsItWasSent) {
  CaseRun run = {.check = "budget", .detail = "why"};
  run.parts.push_back({"scales", 2, 3, {1, 2, 3, 4, 5, 6}});
  const CaseRun back = message::parse_run(message::pack(run));
  EXPECT_EQ(back.check, "budget");
  EXPECT_EQ(back.detail, "why");
  ASSERT_EQ(back.parts.size(), 1u);
  EXPECT_EQ(back.parts[0].name, "scales");
  EXPECT_EQ(back.parts[0].columns, 3u);
  EXPECT_EQ(back.parts[0].values, run.parts[0].values);
}

TEST(PluginMessage, NoCutAndNoFlippedBitIsMoreThanAnError) {
  CaseRun run = {.detail = "x"};
  run.parts.push_back({"y", 2, 2, {1, 2, 3, 4}});
  message::PluginDescription description = {.name = "mine", .version = "1"};
  description.kernels.push_back({.op = "linear", .name = "mine.rows", .about = "b"});
  std::mt19937_64 random(7);
  const auto refused = [](auto parse, const std::vector<std::byte>& bytes) {
    try {
      parse(bytes);
      return false;
    } catch (const Error&) {
      return true;
    }
  };
  const auto attack = [&](auto parse, const std::vector<std::byte>& good) {
    EXPECT_FALSE(refused(parse, good));
    for (std::size_t n = 0; n < good.size(); ++n)
      EXPECT_TRUE(refused(parse, {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)})) << n;
    for (int i = 0; i < 5000; ++i) {
      std::vector<std::byte> bytes = good;
      for (int flips = 0; flips < 1 + i % 3; ++flips)
        bytes[random() % bytes.size()] ^= static_cast<std::byte>(1u << random() % 8);
      refused(parse, bytes);
    }
  };
  attack([](const auto& b) { message::parse_run(b); }, message::pack(run));
  attack([](const auto& b) { message::parse_description(b); }, message::pack(description));
  attack([](const auto& b) { message::parse_line(b); }, message::pack(std::string("a line")));
  attack([](const auto& b) { message::parse_request(b); },
         message::pack(message::RunRequest{.kernel = 1, .id = "linear:F32"}));
  attack(
      [](const auto& b) { message::parse_header(std::span(b).first(std::min<std::size_t>(b.size(), 16))); },
      message::frame(message::Kind::ran, {}));
}

}  // namespace
}  // namespace assay
