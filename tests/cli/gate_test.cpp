// `assay gate` as a user runs it: a baseline written, held to, and each kind of lie in it told.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;

// A folder as the repository has it: models, and a baseline in a folder beside them.
class Gate : public testing::Test {
 protected:
  Gate() {
    fs::create_directories(data_ / "baselines");
    fs::create_directories(data_ / "models");
    for (const char* model : {"tinylm", "tinylm-bf16", "models/llama"})
      fs::copy(source_dir() / "data" / model, data_ / model, fs::copy_options::recursive);
  }
  ProcessResult gate(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"gate", "--baseline", baseline_.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return assay(arguments);
  }
  // The kinds of deviations of a part against a baseline that was changed so.
  std::vector<std::string> kinds_after(const std::string& part, const std::string& pointer,
                                       const json& value) const {
    json changed = json::parse(read_file(baseline_));
    const std::string kept = changed.dump();
    changed[json::json_pointer(pointer)] = value;
    write_file(baseline_, changed.dump());
    const ProcessResult result = gate({"--only", part, "--json", "-"});
    write_file(baseline_, kept);
    const json found = json::parse(result.out)["deviations"];
    EXPECT_EQ(result.exit_code == 0, found.empty()) << result.err;
    std::vector<std::string> kinds;
    for (const json& d : found) kinds.push_back(d["kind"]);
    return kinds;
  }

  TempDir dir_;
  fs::path data_ = dir_ / "data", baseline_ = data_ / "baselines/mine.json";
};
using Kinds = std::vector<std::string>;

TEST_F(Gate, HoldsModelsClaimsAndConversionsToWhatTheyWere) {
  const ProcessResult written = gate({"--only", "models,conversions,claims", "--update"});
  ASSERT_EQ(written.exit_code, 0) << written.out << written.err;
  EXPECT_NE(written.out.find("baseline written"), std::string::npos);
  const json figures = json::parse(read_file(baseline_))["figures"];
  EXPECT_EQ(figures["models"]["llama: cpu kernels, first divergence"], "none");
  EXPECT_EQ(figures["claims"]["tinylm, reference: prefill_by_token"], "bit for bit");
  EXPECT_TRUE(figures["conversions"]["tinylm to bf16 and back to FP8: values"].get<std::string>().ends_with(
      " 0 differ"));

  EXPECT_EQ(kinds_after("models", "/mutants", json::array()), Kinds{});  // nothing of this ran
  EXPECT_EQ(kinds_after("models", "/figures/models/llama: cpu kernels, first divergence", "layers.0.q"),
            Kinds{"changed"});
  EXPECT_EQ(kinds_after("conversions", "/figures/conversions/tinylm-bf16 to int8:channel: SQNR in dB", 44.5),
            Kinds{"worse"});
  EXPECT_EQ(kinds_after("conversions", "/figures/conversions/a conversion that was", 44.5),
            Kinds{"vanished"});
  EXPECT_EQ(kinds_after("claims", "/figures/claims/tinylm, cpu: prefill_by_token", 0.01), Kinds{"worse"});
  fs::remove_all(data_ / "models");
  EXPECT_NE(gate({"--only", "models"}).exit_code, 0);
}

// One model that cannot be read is one deviation: what the others say is not lost, and reports are written.
TEST_F(Gate, APartThatThrowsIsADeviation) {
  ASSERT_EQ(gate({"--only", "models,claims", "--update"}).exit_code, 0);
  write_file(data_ / "models/llama/config.json", "{");
  const fs::path junit = dir_ / "gate.xml", html = dir_ / "gate.html";
  const ProcessResult broken =
      gate({"--only", "models,claims", "--junit", junit.string(), "--html", html.string(), "--json", "-"});
  EXPECT_EQ(broken.exit_code, 1) << broken.err;
  const json document = json::parse(broken.out);
  EXPECT_EQ(document["verdict"], "failed");
  EXPECT_EQ(document["summary"]["deviations"], 4) << document["deviations"];  // the model, its three figures
  EXPECT_GT(document["summary"]["figures"].get<int>(), 4);                    // tinylm's and the claims'
  EXPECT_NE(read_file(junit).find("llama: the model runs"), std::string::npos);
  EXPECT_TRUE(fs::exists(html));

  write_file(data_ / "tinylm/golden.json", "{");  // of the claims as a whole
  const ProcessResult more = gate({"--only", "models,claims", "--json", "-"});
  EXPECT_EQ(more.exit_code, 1) << more.err;
  std::set<std::string> errors;
  const json deviations = json::parse(more.out)["deviations"];
  for (const json& d : deviations) {
    if (d["kind"] == "error") errors.insert(d["kernel"]);
  }
  EXPECT_EQ(errors, std::set<std::string>{"claims"});
}

TEST_F(Gate, ABaselineThatKnowsNothingOrTooLittleIsRefused) {
  write_file(baseline_, R"({"schema": "assay.baseline/1", "kernels": {}, "mutants": [], "figures": {}})");
  const ProcessResult empty = gate({"--only", "conversions"});
  EXPECT_EQ(empty.exit_code, 2) << empty.out;
  EXPECT_NE(empty.err.find("records nothing"), std::string::npos) << empty.err;

  ASSERT_EQ(gate({"--only", "conversions", "--update"}).exit_code, 0);
  EXPECT_EQ(gate({"--only", "conversions"}).exit_code, 0);
  json partial = json::parse(read_file(baseline_));
  json& conversions = partial["figures"]["conversions"];
  conversions.erase(conversions.begin());
  write_file(baseline_, partial.dump());
  const ProcessResult less = gate({"--only", "conversions"});
  EXPECT_EQ(less.exit_code, 1) << less.out;
  EXPECT_NE(less.out.find("unrecorded  conversions"), std::string::npos) << less.out;
  EXPECT_EQ(gate({"--only", "conversions", "--allow-unrecorded"}).exit_code, 0);
}

TEST_F(Gate, AFaultInAModelFailsEvenAnUpdate) {
  // The reference then no longer computes what transformers did.
  const fs::path file = data_ / "models/llama/model.safetensors";
  std::string bytes = read_file(file);
  bytes[bytes.size() - 1001] ^= 0x40;
  write_file(file, bytes);
  const ProcessResult result = gate({"--only", "models", "--update"});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_NE(result.out.find("reference against transformers"), std::string::npos);
  EXPECT_FALSE(fs::exists(baseline_));

  // Excused by the ledger beside the baseline, up to its day.
  write_file(data_ / "baselines/known_failures.json",
             R"({"known_failures": [{"kernel": "models", "case": "llama: reference against transformers",
                 "reason": "issue 12", "expires": "2026-12-31"}]})");
  const ProcessResult excused = gate({"--only", "models", "--update", "--today", "2026-12-31"});
  EXPECT_EQ(excused.exit_code, 0) << excused.out << excused.err;
  EXPECT_NE(excused.out.find("known failed  models llama"), std::string::npos) << excused.out;
  EXPECT_NE(excused.out.find("0 deviations, 1 tolerated"), std::string::npos) << excused.out;
  const ProcessResult expired = gate({"--only", "models", "--today", "2027-01-01"});
  EXPECT_EQ(expired.exit_code, 1);
  EXPECT_NE(expired.out.find("expired  models llama"), std::string::npos) << expired.out;
  EXPECT_EQ(gate({"--only", "models", "--today", "2026-13-01"}).exit_code, 2);
}

TEST_F(Gate, ALedgersWordsAboutAGpuWaitForOne) {
  write_file(data_ / "baselines/known_failures.json",
             R"({"known_failures": [{"kernel": "cuda.gone", "case": "rope:F32:m=1", "reason": "issue 12",
                 "expires": "2999-12-31"}]})");
  // CUDA's own way to hide what devices there are.
  const ProcessResult result =
      assay({"gate", "--baseline", baseline_.string(), "--only", "kernels", "--update"},
            {.environment = {"CUDA_VISIBLE_DEVICES="}});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("SKIPPED: kernels on the GPU"), std::string::npos) << result.out;
  EXPECT_EQ(gate({"--only", "models"}).out.find("SKIPPED"), std::string::npos);  // asked for none
}

// stdout is the document's alone, and GitHub reads both streams.
TEST_F(Gate, AnnotatesBesideADocument) {
  write_file(baseline_, R"({"schema": "assay.baseline/1", "kernels": {}, "mutants": [],
                            "figures": {"conversions": {"one that was": 44.5}}})");
  const std::vector<std::string> arguments = {"gate", "--baseline", baseline_.string(), "--only",
                                              "conversions"};
  const std::string line = "::error title=assay gate: vanished::conversions one that was: ";
  EXPECT_NE(assay(arguments, {.environment = {"GITHUB_ACTIONS=true"}}).out.find(line), std::string::npos);
  std::vector<std::string> with_json = arguments;
  with_json.insert(with_json.end(), {"--json", "-"});
  const ProcessResult result = assay(with_json, {.environment = {"GITHUB_ACTIONS=true"}});
  EXPECT_NE(result.err.find(line), std::string::npos) << result.err;
  EXPECT_EQ(json::parse(result.out)["verdict"], "failed");
  EXPECT_EQ(assay(with_json).err.find("::error"), std::string::npos);
}

TEST_F(Gate, KnowsItsParts) {
  const ProcessResult result = gate({"--only", "model", "--update"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("kernels, mutants, models, claims, caches, conversions"), std::string::npos);
}

}  // namespace
}  // namespace assay::test
