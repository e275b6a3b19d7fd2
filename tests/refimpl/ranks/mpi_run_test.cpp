// The program over ranks: threads, and processes that Open MPI's launcher starts.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;

std::vector<std::string> words(const std::string& model, const std::vector<std::string>& more) {
  std::vector<std::string> all = {"run",      (source_dir() / "data/models" / model).string(),
                                  "--tokens", "5,16,27,38,49",
                                  "--tokens", "7,9,11",
                                  "-n",       "12",
                                  "--json",   "-"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

json ids_of(const ProcessResult& result) {
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  if (result.exit_code != 0) return {};
  json ids = json::array();
  const json report = json::parse(result.out);
  for (const json& sequence : report.at("sequences")) ids.push_back(sequence.at("ids"));
  return ids;
}

TEST(RunOverRanks, ThreadsSayWhatOneProcessSays) {
  const json whole = ids_of(assay(words("deepseek-v3", {})));
  for (const auto& grid : std::vector<std::vector<std::string>>{
           {"--tp", "4"}, {"--pp", "2"}, {"--tp", "2", "--ep", "4", "--dp", "2"}}) {
    std::vector<std::string> more = grid;
    more.push_back("--threads-as-ranks");
    EXPECT_EQ(ids_of(assay(words("deepseek-v3", more))), whole) << grid.front();
  }
}

TEST(RunOverRanks, ProcessesSayWhatOneProcessSays) {
  ASSAY_PROGRAM_OR_SKIP("mpirun");
  const json whole = ids_of(assay(words("deepseek-v3", {})));
  const auto over = [](const std::string& ranks, std::vector<std::string> arguments) {
    std::vector<std::string> all = {
        "mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,tcp", "-n",
        ranks,    assay_binary()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run(all);
  };
  const ProcessResult first = over("2", words("deepseek-v3", {"--tp", "2"}));
  if (first.err.find("built without MPI") != std::string::npos) GTEST_SKIP() << "SKIPPED: built without MPI";
  if (first.exit_code != 0 && first.err.find("assay:") == std::string::npos)
    GTEST_SKIP() << "SKIPPED: mpirun starts nothing here: " << first.err;
  EXPECT_EQ(ids_of(first), whole);
  EXPECT_EQ(ids_of(over("4", words("deepseek-v3", {"--tp", "2", "--pp", "2"}))), whole);
  EXPECT_EQ(ids_of(over("4", words("deepseek-v3", {"--tp", "2", "--ep", "4", "--dp", "2"}))), whole);
  // One line, by one rank.
  const ProcessResult refused = over("3", words("deepseek-v3", {"--tp", "3"}));
  EXPECT_NE(refused.exit_code, 0);
  const auto at = refused.err.find("cannot be cut into tp=3");
  EXPECT_NE(at, std::string::npos) << refused.err;
  EXPECT_EQ(refused.err.find("cannot be cut", at + 10), std::string::npos) << refused.err;
  // Before any rank knows of another, too.
  const ProcessResult nothing = over("3", {"run", "no-such-folder", "--tokens", "1", "--tp", "3"});
  EXPECT_NE(nothing.exit_code, 0);
  const auto said = nothing.err.find("assay: ");
  EXPECT_NE(said, std::string::npos) << nothing.err;
  EXPECT_EQ(nothing.err.find("assay: ", said + 5), std::string::npos) << nothing.err;
}

// CPU kernels, in the order of ranks: every sum within 4 √K u Σ|x w| of the reference's tree over the same inputs, and the same
// twice.
TEST(RunOverRanks, KernelsStayWithinTheBudgetOfSums) {
  for (const char* model : {"llama", "deepseek-v3", "qwen3-next"}) {
    for (const char* precision : {"f32", "bf16"}) {
      const ProcessResult result =
          assay({"run", (source_dir() / "data/models" / model).string(), "--tokens", "5,16,27,38,49,7,9,11",
                 "--claims", "--tp", "2", "--threads-as-ranks", "--kernels", "cpu", "--rank-sum", "order",
                 "--precision", precision, "--json", "-"});
      ASSERT_EQ(result.exit_code, 0) << model << " " << precision << result.out << result.err;
      std::size_t sums = 0;
      const json report = json::parse(result.out);
      for (const json& claim : report.at("claims"))
        if (claim.at("name") == "ranks_order") ++sums;
      EXPECT_EQ(sums, 1U);
    }
  }
}

// Whoever guesses, and whoever has what of the model: the text without guesses, and guesses that are right.
TEST(RunOverRanks, GuessesChangeNothing) {
  const std::string folder = (source_dir() / "data/models/deepseek-v3").string();
  const auto over = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"run", folder, "--tokens", "5,16,27,5,16,27,5,16",
                                    "-n",  "20",   "--json",   "-"};
    all.insert(all.end(), more.begin(), more.end());
    const ProcessResult result = assay(all);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return result.exit_code == 0 ? json::parse(result.out) : json();
  };
  const json whole = over({"--tp", "1", "--pp", "2", "--threads-as-ranks"});
  using Words = std::vector<std::string>;
  const Words own = {"--speculate"}, lookup = {"--speculate", "lookup"}, draft = {"--draft-model", folder};
  for (const auto& [grid, guesses] :
       std::vector<std::pair<Words, Words>>{{{"--tp", "2"}, own},
                                            {{"--tp", "4", "--ep", "2"}, own},
                                            {{"--tp", "2"}, lookup},
                                            {{"--pp", "2"}, lookup},
                                            {{"--tp", "2", "--ep", "4", "--dp", "2"}, lookup},
                                            {{"--tp", "2", "--pp", "2"}, draft}}) {
    Words more = grid;
    more.insert(more.end(), guesses.begin(), guesses.end());
    more.push_back("--threads-as-ranks");
    const json report = over(more);
    ASSERT_FALSE(report.is_null());
    EXPECT_EQ(report.at("sequences")[0].at("ids"), whole.at("sequences")[0].at("ids"))
        << grid[0] << guesses[0];
    EXPECT_GT(report.at("speculation").at("drafted"), 0);
    if (guesses == draft) {
      EXPECT_GT(report.at("speculation").at("accepted"), 0);
    }
  }
  const ProcessResult refused =
      assay({"run", folder, "--tokens", "5,16", "--pp", "2", "--speculate", "--threads-as-ranks"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("prediction layers guess under --tp and --ep"), std::string::npos)
      << refused.err;
}

// What each holds, and what a plan says of it.
TEST(RunOverRanks, BytesOfWeightsAreThosePlanned) {
  for (const char* model : {"deepseek-v3-fp8", "gpt-oss", "gpt2"}) {
    const ProcessResult result =
        assay({"run", (source_dir() / "data/models" / model).string(), "--tokens", "5,16", "-n", "1", "--tp",
               "2", "--pp", "2", "--threads-as-ranks", "--json", "-"});
    ASSERT_EQ(result.exit_code, 0) << model << result.err;
    const json report = json::parse(result.out);
    ASSERT_EQ(report.at("ranks").size(), 4U);
    for (const json& rank : report.at("ranks")) EXPECT_EQ(rank.at("held_bytes"), rank.at("planned_bytes"));
    EXPECT_NE(result.err.find("bytes of weights as planned"), std::string::npos) << result.err;
  }
}

TEST(RunOverRanks, WrongUsageIsSaid) {
  EXPECT_EQ(assay(words("mistral", {"--threads-as-ranks"})).exit_code, 2);
  EXPECT_EQ(assay(words("mistral", {"--tp", "2"})).exit_code, 2);  // nobody started it
  EXPECT_EQ(assay(words("mistral", {"--tp", "2", "--threads-as-ranks", "--kernels", "cpu"})).exit_code, 2);
  const ProcessResult refused = assay(words("mistral", {"--tp", "3", "--threads-as-ranks"}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("mistral cannot be cut into tp=3"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace assay::test
