// `assay compare kernels` and `compare model` as a user runs them: what is refused, what is told, what is
// written. (`compare dumps`: tests/kernels/dumps_cli_test.cpp.)
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/numeric/simd_targets.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;
using Arguments = std::vector<std::string>;

ProcessResult compare(const std::string& what, Arguments more) {
  more.insert(more.begin(), {"compare", what});
  return assay(more);
}
std::string data(const std::string& name) {
  return (source_dir() / "data" / name).string();
}
// One line, exit code 2, and the reason in it.
void expect_refused(const ProcessResult& result, const std::string& reason) {
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_NE(result.err.find(reason), std::string::npos) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST(CompareKernelsCommand, RefusesWhatDoesNotGoTogether) {
  const std::vector<std::pair<Arguments, std::string>> wrong = {
      {{"--list", "--mutants"}, "exclude one another"},
      {{"--perf", "--dry-run"}, "exclude one another"},
      {{"--sm", "89"}, "--sm goes with --dry-run"},
      {{"--dry-run", "--device", "cpu"}, "GPUs"},
      {{"--mutants", "--kernel", "cpu.gemv"}, "only --op chooses"},
      {{"--mutants", "--device", "cpu"}, "only --op chooses"},
      {{"--list", "--csv", "/dev/null"}, "--csv goes with"},
      {{"--mutants", "--csv", "/dev/null"}, "--csv goes with"},
      {{"--dry-run", "--csv", "/dev/null"}, "--csv goes with"},
      {{"--frobnicate"}, "see 'assay compare kernels --help'"},
  };
  for (const auto& [arguments, reason] : wrong) expect_refused(compare("kernels", arguments), reason);
}

TEST(CompareKernelsCommand, TakesAnInstructionSetThatTheProcessorHas) {
  const Arguments small = {"--case", "linear:F32:m=2:k=33:n=5:in=zero:seed=1", "--kernel", "^cpu"};
  for (const std::string& target : simd_targets()) {
    Arguments arguments = small;
    arguments.insert(arguments.end(), {"--isa", target});
    EXPECT_EQ(compare("kernels", arguments).exit_code, 0) << target;
  }
  Arguments unknown = small;
  unknown.insert(unknown.end(), {"--isa", "abacus"});
  expect_refused(compare("kernels", unknown), "--isa: there is no 'abacus'");
}

TEST(CompareKernelsCommand, KnowsThatItCannotWriteBeforeItComputes) {
  const TempDir folder;
  const std::string missing = (folder / "none" / "a.csv").string();
  for (const char* option : {"--csv", "--json"}) {
    const ProcessResult result = compare("kernels", {"--op", "rope", option, missing});
    expect_refused(result, missing);
    EXPECT_EQ(result.out, "") << option;  // nothing had been examined
  }
}

TEST(CompareKernelsCommand, TimesGoIntoATable) {
  const TempDir folder;
  const fs::path csv = folder / "perf.csv";
  const std::string id = "rope:F32:m=3:heads=2:dim=8:rotary=8:offset=0:layout=half:first=3:in=zero:seed=1";
  const ProcessResult result =
      compare("kernels", {"--perf", "--case", id, "--kernel", "cpu", "--csv", csv.string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string table = read_file(csv);
  EXPECT_TRUE(table.starts_with("id,kernel,device,seconds,flops,bytes,share_of_roof\n")) << table;
  EXPECT_NE(table.find("\n" + id + ",cpu.simd,cpu,"), std::string::npos) << table;
}

TEST(CompareKernelsCommand, SaysWhyNothingWasTimed) {
  // CUDA's own way to hide what devices there are.
  const ProcessResult hidden = assay({"compare", "kernels", "--perf", "--op", "rope", "--device", "cuda"},
                                     {.environment = {"CUDA_VISIBLE_DEVICES="}});
  EXPECT_EQ(hidden.exit_code, 0) << hidden.err;
  EXPECT_NE(hidden.out.find("SKIPPED: no CUDA device"), std::string::npos) << hidden.out;
}

TEST(CompareModelCommand, RefusesWhatItCannotCompare) {
  const std::string model = data("models/llama");
  const std::vector<std::pair<Arguments, std::string>> wrong = {
      {{model, "--tokens", ""}, "--tokens takes ids"},
      {{model, "-n", "-1"}, "-n"},
      {{model, "--mutants", "--html", "page.html"}, "--mutants"},
      {{model, "--mutants", "--csv", "taps.csv"}, "--mutants"},
      {{model, "--html", "/nowhere/page.html"}, "/nowhere/page.html"},
      {{model, "--against", data("tinylm")}, "the two sides are not one model: vocabularies of 448 and "},
      {{model, "--tokens", "1,2", "-p", "x"}, "exclude one another"},
      {{model, "--kernels", "cpu,linear=nobody"}, "no kernels are called"},
  };
  for (const auto& [arguments, reason] : wrong) expect_refused(compare("model", arguments), reason);
}

TEST(CompareModelCommand, AFileThatMayNotGrowIsOneLineAndLeavesNothing) {
  const TempDir folder;
  const std::string page = (folder / "page.html").string();
  const ProcessResult result = run({"sh", "-c", "ulimit -f 1; exec \"$@\"", "sh", assay_binary(), "compare",
                                    "model", data("models/llama"), "--tokens", "1,5,9", "--html", page});
  expect_refused(result, page + ": cannot write: File too large");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(CompareModelCommand, WritesItsTableAndItsPage) {
  const TempDir folder;
  const fs::path csv = folder / "taps.csv", page = folder / "page.html", document = folder / "a.json";
  const ProcessResult result =
      compare("model", {data("models/llama"), "--tokens", "1,5,9,2,2,7", "--csv", csv.string(), "--html",
                        page.string(), "--json", document.string()});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.err, "");  // the CPU kernels take all of it: nothing to note
  EXPECT_NE(read_file(csv).find("layers.0.attn_out"), std::string::npos);
  EXPECT_NE(read_file(page).find("</html>"), std::string::npos);
  const json found = json::parse(read_file(document));
  EXPECT_EQ(found["verdict"], "ok");
  EXPECT_EQ(found["fallbacks"], json::array());
  EXPECT_EQ(found["against_fallbacks"], json::array());
}

// What the kernels that were asked for do not take, the reference computes; that must not look like theirs.
TEST(Fallbacks, AreToldWhereThereAreSome) {
  const std::string note = "note: no chosen kernel takes, and the reference computed: ";
  const Arguments run = {"run", data("models/llama"), "--tokens", "1,5,9", "-n", "2"};
  const auto with = [&](Arguments more) {
    more.insert(more.begin(), run.begin(), run.end());
    more.insert(more.end(), {"--json", "-"});
    return assay(more);
  };
  const ProcessResult all_taken = with({"--kernels", "cpu"});
  EXPECT_EQ(all_taken.err.find("note:"), std::string::npos) << all_taken.err;
  EXPECT_EQ(json::parse(all_taken.out)["fallbacks"], json::array());

  // In bfloat16 linear layers and norms have kernels, recurrent layers have none.
  const ProcessResult some_taken = assay({"run", data("models/mamba2"), "--tokens", "1,5,9", "-n", "2",
                                          "--kernels", "cpu", "--precision", "bf16"});
  EXPECT_NE(some_taken.err.find(note), std::string::npos) << some_taken.err;
  EXPECT_NE(some_taken.err.find("state_space (all "), std::string::npos) << some_taken.err;
  EXPECT_EQ(some_taken.err.find("linear"), std::string::npos) << some_taken.err;

  const ProcessResult none_taken = with({"--kernels", "cpu", "--precision", "f64"});
  EXPECT_NE(none_taken.err.find(note + "attention (all "), std::string::npos) << none_taken.err;
  const json fallbacks = json::parse(none_taken.out)["fallbacks"];
  const auto linear =
      std::find_if(fallbacks.begin(), fallbacks.end(), [](const json& f) { return f["op"] == "linear"; });
  ASSERT_NE(linear, fallbacks.end()) << fallbacks;
  EXPECT_EQ((*linear)["calls"], (*linear)["by_reference"]);
  EXPECT_GT((*linear)["calls"], 0);
  EXPECT_EQ((*linear)["forms"].size(), 1u);

  // The operations nobody chose a kernel for are the reference's by intent.
  const ProcessResult chosen = with({"--kernels", "rope=cpu.simd"});
  EXPECT_EQ(chosen.err.find("note:"), std::string::npos) << chosen.err;
  EXPECT_EQ(with({"--kernels", "reference", "--precision", "bf16"}).err.find("note:"), std::string::npos);

  const ProcessResult compared =
      compare("model", {data("models/mamba2"), "--tokens", "1,5,9", "--precision", "bf16"});
  EXPECT_NE(compared.err.find("note: mamba2 in bf16, cpu kernels: no chosen kernel takes"), std::string::npos)
      << compared.err;
}

TEST(Fallbacks, SayWhichFormsOfWeights) {
  // FP8 with scales under a kernel that takes plain rows only in part.
  const ProcessResult result =
      assay({"run", data("tinylm"), "--tokens", "1,5,9", "-n", "1", "--kernels", "linear=cpu.gemv_int24"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("linear (all "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("; BF16, F8_E4M3 with scales)"), std::string::npos) << result.err;
}

// Latent attention, a mixture of experts, all weights in blocks of integers, activations in integers too: the
// yardstick has to round them as well, and what it then explains is no wide berth.
TEST(Precision, IntegersOnADeepSeekShapedGguf) {
  const TempDir folder;
  const std::string model = (folder / "tiny.gguf").string();
  const std::string text = "Mira had a green goat. She went to the river and sat down.";
  ASSERT_EQ(assay({"convert", data("tinylm-bf16"), model, "--to", "gguf:q8_0"}).exit_code, 0);
  for (const std::string precision : {"int8-block", "int16"}) {
    const ProcessResult claims =
        assay({"run", model, "-p", text, "--claims", "--kernels", "cpu", "--precision", precision});
    EXPECT_EQ(claims.exit_code, 0) << claims.out << claims.err;
    EXPECT_NE(claims.out.find("latent attention absorbed"), std::string::npos) << claims.out;
    for (const std::string kernels : {"cpu", "reference"}) {
      const ProcessResult compared =
          compare("model", {model, "-p", text, "--kernels", kernels, "--precision", precision});
      EXPECT_EQ(compared.exit_code, 0) << precision << kernels << compared.out << compared.err;
    }
  }
}

TEST(Precision, WithoutWeightsForItIsTold) {
  const std::string note = "everything is computed as under f32";
  const auto told = [&](const char* kernels) {
    return assay({"run", data("tinylm"), "--tokens", "1,5", "-n", "1", "--precision", "int8-block",
                  "--kernels", kernels})
        .err;
  };
  EXPECT_NE(told("cpu").find(note), std::string::npos);
  EXPECT_NE(told("reference").find("int8-block is left to kernels"), std::string::npos);
  EXPECT_NE(
      compare("model", {data("models/llama"), "--tokens", "1,5", "--precision", "int8-block"}).err.find(note),
      std::string::npos);
}

}  // namespace
}  // namespace assay::test
