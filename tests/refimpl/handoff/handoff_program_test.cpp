// Two processes, as a user runs them: the text of one, or an error; also where either is killed at any moment.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/refimpl/handoff/beside.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::Beside, test::files_in, test::kNoHang;
using Clock = std::chrono::steady_clock;

std::vector<std::string> run_of(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"run", (test::source_dir() / "data/tinylm").string(), "-j", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}
std::vector<std::string> program(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), test::assay_binary());
  return arguments;
}
const std::string kText =
    "Once upon a time there was a little girl who lived in a small house near the forest, and every day she "
    "went out to "
    "play with her friends until the sun went down and her mother called her home again.";

std::string uncut_text() {
  static const std::string text = test::assay(run_of({"-p", kText, "-n", "12"})).out;
  return text;
}

// "tcp://127.0.0.1:PORT", as a decoder tells it.
std::string address_told(const Beside& decoder) {
  for (const auto until = Clock::now() + std::chrono::seconds(60); Clock::now() < until;) {
    const std::string told = decoder.err();
    const std::size_t at = told.find("tcp://"), end = told.find('\n', at);
    if (at != std::string::npos && end != std::string::npos) return told.substr(at, end - at);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return "";
}

TEST(HandoffProgram, ThroughAFolder) {
  const test::TempDir dir;
  const std::string folder = dir / "parts";
  const test::ProcessResult sent = test::assay(run_of({"-p", kText, "--handoff-to", folder, "--json", "-"}));
  ASSERT_EQ(sent.exit_code, 0) << sent.err;
  const auto document = nlohmann::json::parse(sent.out).at("handoff");
  EXPECT_GT(document.at("timeline").at("layers").size(), 0U);
  EXPECT_EQ(document.at("parts").get<std::size_t>(), files_in(folder));
  const test::ProcessResult taken = test::assay(run_of({"-n", "12", "--handoff-from", folder}));
  EXPECT_EQ(taken.exit_code, 0) << taken.err;
  EXPECT_EQ(taken.out, uncut_text());
  EXPECT_EQ(files_in(folder), 0U);
}

// Ranks feed one process, and one process ranks; in float64, where the order of sums decides no token.
TEST(HandoffProgram, RanksOnEitherSide) {
  const test::TempDir dir;
  const std::string folder = dir / "parts", model = (test::source_dir() / "data/models/llama").string();
  const std::string prompt = "5,42,79,20,57,94,35,72,13,50,87,28";
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", model, "-j", "1", "--precision", "f64", "--ignore-eos", "--json", "-"});
    const test::ProcessResult result = test::assay(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  };
  const std::vector<std::string> of_ranks = {"--tp", "2", "--threads-as-ranks"}, made = {"-n", "6"};
  const auto with = [](std::vector<std::string> a, const std::vector<std::string>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const auto ids = run(with({"--tokens", prompt}, made))["ids"];

  const auto sent = run(with({"--tokens", prompt, "--handoff-to", folder}, of_ranks))["handoff"];
  std::uint64_t rows = 0;
  for (const auto& rank : sent["ranks"]) rows += rank["row_bytes"].get<std::uint64_t>();
  EXPECT_EQ(sent["ranks"].size(), 2U);
  EXPECT_EQ(rows, 12 * 192 * 8);
  EXPECT_EQ(run(with({"--handoff-from", folder, "--handoff-ranks", "2"}, made))["ids"], ids);
  EXPECT_EQ(files_in(dir / "parts/rank-1"), 0U);

  const auto fed = run({"--tokens", prompt, "--handoff-to", folder, "--handoff-ranks", "2"})["handoff"];
  EXPECT_EQ(fed["row_bytes"], 12 * 192 * 8);
  const auto taken = run(with(with({"--handoff-from", folder}, made), of_ranks));
  EXPECT_EQ(taken["ids"], ids);
  EXPECT_EQ(taken["handoff"]["checked"], true);
}

TEST(HandoffProgram, OverASocketWithAKey) {
  const test::TempDir dir;
  test::write_file(dir / "keys", "a-key-that-others-do-not-have\n");
  test::write_file(dir / "wrong", "another-key\n");
  Beside decoder(program(run_of({"-n", "12", "--handoff-from", "tcp://127.0.0.1:0", "--handoff-key-file",
                                 dir / "keys"})),
                 dir / "out", dir / "err");
  const std::string where = address_told(decoder);
  const test::ProcessResult refused =
      test::assay(run_of({"-p", kText, "--handoff-to", where, "--handoff-key-file", dir / "wrong"}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("no such key"), std::string::npos) << refused.err;
  const test::ProcessResult sent = test::assay(run_of(
      {"-p", kText, "--handoff-to", where, "--handoff-first", "hidden", "--handoff-key-file", dir / "keys"}));
  EXPECT_EQ(sent.exit_code, 0) << sent.err;
  EXPECT_EQ(decoder.wait(60), 0) << decoder.err();
  EXPECT_EQ(decoder.out(), uncut_text());
}

TEST(HandoffProgram, RefusesOtherArithmeticAndOtherRules) {
  const test::TempDir dir;
  const std::string folder = dir / "parts";
  ASSERT_EQ(test::assay(run_of({"-p", kText, "--handoff-to", folder})).exit_code, 0);
  const auto refused = [&](std::vector<std::string> more, const std::string& why) {
    more.insert(more.end(), {"-n", "12", "--handoff-from", folder});
    const test::ProcessResult result = test::assay(run_of(more));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
  };
  refused({"--precision", "bf16"}, "other weights, or by another arithmetic");
  refused({"--temperature", "1"}, "by other rules");
  const test::ProcessResult taken = test::assay(run_of({"-n", "12", "--handoff-from", folder}));
  EXPECT_EQ(taken.out, uncut_text()) << taken.err;  // it is still there
}

TEST(HandoffProgram, RefusesWhatCannotBe) {
  const auto refused = [&](const std::vector<std::string>& more, const std::string& why) {
    const test::ProcessResult result = test::assay(run_of(more));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
  };
  refused({"--handoff-from", "tcp://0.0.0.0:0"}, "can be reached from elsewhere");
  refused({"-p", "a", "--handoff-from", "x"}, "the prompt comes with the hand-off");
  refused({"-p", "a", "--handoff-to", "x", "--handoff-from", "x"}, "two processes' options");
  refused({"-p", "a", "--handoff-whole"}, "go with --handoff-to");
  refused({"-p", "a", "--handoff-to", "x", "--cache-dir", "y"}, "a text that is made");
  refused({"-p", "a", "--handoff-ranks", "2"}, "goes with --handoff-to or --handoff-from");
  refused({"-p", "a", "--handoff-to", "x", "--handoff-ranks", "2y3"}, "takes N, as of --tp N, or NxM");
  refused({"-p", "a", "--handoff-to", "x", "--handoff-ranks", "1x9"}, "layers over 9 stages");
  refused({"-p", "a", "--handoff-to", "x", "--handoff-ranks", "2", "--handoff-heads", "2"},
          "--handoff-heads");
  refused({"--handoff-from", "tcp://127.0.0.1:0", "--handoff-ranks", "2"}, "give the first of them");
  refused({"-p", "a", "--handoff-to", "tcp://127.0.0.1:1", "--handoff-timeout", "0.2"}, "nobody takes");
}

// The second visit of a conversation, in another process: what is new is computed, and no more than the block it begins in.
TEST(CacheTiers, SecondVisitCostsWhatIsNew) {
  const test::TempDir dir;
  const std::string more = kText + " Then she slept.";
  const auto visit = [&](const std::string& text) {
    const test::ProcessResult result = test::assay(run_of(
        {"-p", text, "-n", "4", "--cache-dir", dir / "blocks", "--cache-memory", "1MiB", "--json", "-"}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  };
  const std::size_t known = visit(kText).at("cache").at("computed_tokens").get<std::size_t>();
  const nlohmann::json second = visit(more);
  const std::size_t tokens = second.at("sequences").at(0).at("prompt_ids").size();
  const std::size_t computed = second.at("cache").at("computed_tokens").get<std::size_t>();
  EXPECT_LT(computed, tokens - known + 2 * 16);
  EXPECT_EQ(computed + second.at("cache").at("hit_tokens").get<std::size_t>(), tokens);
  EXPECT_EQ(
      second.at("text"),
      nlohmann::json::parse(test::assay(run_of({"-p", more, "-n", "4", "--json", "-"})).out).at("text"));
  EXPECT_EQ(test::assay(run_of({"-p", more, "--cache-memory", "1MiB"})).exit_code, 2);
}

std::uint64_t kills() {
  const char* wanted = std::getenv("ASSAY_KILLS");
  return wanted == nullptr ? 6 : std::strtoull(wanted, nullptr, 10);
}

// Of two processes one is killed -9 somewhere between its start and its end. The other comes to an end of its own; a whole
// text is the right one; and the next two, in the same folder, write it and leave nothing.
TEST(HandoffProgram, SurvivesKills) {
  const test::TempDir dir;
  const std::string folder = dir / "parts";
  std::mt19937_64 random(17);
  const auto begin = Clock::now();
  ASSERT_EQ(test::assay(run_of({"-p", kText, "--handoff-to", folder})).exit_code, 0);
  const double whole = std::chrono::duration<double>(Clock::now() - begin).count();
  ASSERT_EQ(test::assay(run_of({"-n", "12", "--handoff-from", folder})).out, uncut_text());
  std::size_t errors = 0, texts = 0;
  for (std::uint64_t i = 0; i < kills(); ++i) {
    const bool by_socket = i % 2 == 1, kill_prefill = random() % 2 == 0;
    const double moment = 2 * whole * static_cast<double>(random() % 1000) / 1000;
    Beside decoder(program(run_of({"-n", "12", "--handoff-timeout", "5", "--handoff-from",
                                   by_socket ? "tcp://127.0.0.1:0" : folder})),
                   dir / "out", dir / "err");
    const std::string where = by_socket ? address_told(decoder) : folder;
    Beside prefill(program(run_of({"-p", kText, "--handoff-timeout", "5", "--handoff-to", where})),
                   dir / "out2", dir / "err2");
    std::this_thread::sleep_for(std::chrono::duration<double>(moment));
    (kill_prefill ? prefill : decoder).kill();
    const int prefill_code = prefill.wait(kNoHang), decoder_code = decoder.wait(kNoHang);
    SCOPED_TRACE(i);
    ASSERT_NE(prefill_code, -1) << "the prefill hangs";
    ASSERT_NE(decoder_code, -1) << "the decoder hangs";
    if (decoder_code == 0) {
      ++texts;
      EXPECT_EQ(decoder.out(), uncut_text());
    } else {
      ++errors;
      EXPECT_TRUE(decoder_code == 2 || decoder_code == 128 + SIGKILL) << decoder.err();
      EXPECT_TRUE(uncut_text().starts_with(decoder.out()) || decoder.out() == "\n") << decoder.out();
      EXPECT_EQ(decoder_code == 2, decoder.err().find("assay: ") != std::string::npos) << decoder.err();
    }
    EXPECT_TRUE(prefill_code == 0 || prefill_code == 2 || prefill_code == 128 + SIGKILL) << prefill.err();
    if (by_socket) continue;
    ASSERT_EQ(test::assay(run_of({"-p", kText, "--handoff-to", folder})).exit_code, 0);
    EXPECT_EQ(test::assay(run_of({"-n", "12", "--handoff-from", folder})).out, uncut_text());
    EXPECT_EQ(files_in(folder), 0U);
  }
  RecordProperty("errors", std::to_string(errors));
  RecordProperty("texts", std::to_string(texts));
}

}  // namespace
}  // namespace assay
