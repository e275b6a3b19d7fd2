// `assay inspect` as a user meets it.
#include <nlohmann/json.hpp>

#include "core/system/error.h"
#include "core/system/name_filter.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using nlohmann::json;
using test::safetensors_bytes;
using test::TempDir;
using test::write_file;

std::string two_tensors() {
  return safetensors_bytes(
      R"({"__metadata__":{"format":"pt","note":"line\nbreak"},)"
      R"("w":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},"\u001b[2Jx":{"dtype":"F32","shape":[],"data_offsets":[12,16]}})",
      std::string(16, '\1'));
}

TEST(Inspect, ListsTensorsAndTotals) {
  TempDir folder;
  write_file(folder / "m.safetensors", two_tensors());
  const auto result = test::assay({"inspect", (folder / "m.safetensors").string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("[2, 3]"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("BF16"), std::string::npos);
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos) << "a name reached the terminal unescaped";
  EXPECT_NE(result.out.find("\\x1b[2Jx"), std::string::npos) << result.out;
}

TEST(Inspect, JsonHoldsEveryFact) {
  TempDir folder;
  write_file(folder / "m.safetensors", two_tensors());
  const auto result = test::assay({"inspect", (folder / "m.safetensors").string(), "--json", "-"});
  const json document = json::parse(result.out);
  EXPECT_EQ(document["schema"], "assay.inspect/1");
  EXPECT_EQ(document["container"], "safetensors");
  EXPECT_EQ(document["files"][0]["metadata"]["note"], "line\nbreak");
  const std::uint64_t buffer = std::filesystem::file_size(folder / "m.safetensors") - 16;
  EXPECT_EQ(document["tensors"][0], json({{"name", "w"},
                                          {"type", "BF16"},
                                          {"shape", {2, 3}},
                                          {"bytes", 12},
                                          {"offset", buffer},
                                          {"file", "m.safetensors"}}));
  EXPECT_EQ(document["totals"]["elements"], 7);
  EXPECT_EQ(document["totals"]["bytes"], 16);
  EXPECT_EQ(document["totals"]["types"]["F32"]["tensors"], 1);
}

TEST(Inspect, APointerOrAWebPageIsNamedNotReadAsALength) {
  TempDir folder;
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') +
      "\nsize 4302348032\n";
  for (const char* name : {"m.safetensors", "m.gguf"}) {
    const std::string path = (folder / name).string();
    write_file(path, pointer);
    const auto of_pointer = test::assay({"inspect", path});
    EXPECT_EQ(of_pointer.exit_code, 2);
    EXPECT_NE(of_pointer.err.find("is still a git-lfs pointer, to 4.30 GB"), std::string::npos)
        << of_pointer.err;
    write_file(path, "\n<!DOCTYPE HTML><html>Too many requests</html>");
    const auto of_page = test::assay({"inspect", path});
    EXPECT_EQ(of_page.exit_code, 2);
    EXPECT_NE(of_page.err.find("is an HTML page"), std::string::npos) << of_page.err;
  }
}

TEST(Inspect, FiltersByName) {
  TempDir folder;
  write_file(folder / "m.safetensors", two_tensors());
  const std::string path = (folder / "m.safetensors").string();
  const auto count = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"inspect", path, "--json", "-"});
    return json::parse(test::assay(options).out)["tensors"].size();
  };
  EXPECT_EQ(count({"--include", "^w$"}), 1u);
  EXPECT_EQ(count({"--exclude", "^w$"}), 1u);
  EXPECT_EQ(count({"--include", "w|x", "--exclude", "x"}), 1u);
  EXPECT_EQ(test::assay({"inspect", path, "--include", "("}).exit_code, 2);
}

TEST(Inspect, ShowsMetadataAndFiles) {
  TempDir folder;
  write_file(folder / "m.safetensors", two_tensors());
  const std::string path = (folder / "m.safetensors").string();
  EXPECT_NE(test::assay({"inspect", path, "--metadata"}).out.find("line\\nbreak"), std::string::npos);
  const std::string files = test::assay({"inspect", path, "--files"}).out;
  EXPECT_NE(files.find("FILE BYTES"), std::string::npos) << files;
  EXPECT_EQ(files.find("[2, 3]"), std::string::npos);
}

TEST(Inspect, SaysWhatIsNotACheckpoint) {
  TempDir folder;
  write_file(folder / "m.safetensors", "<!DOCTYPE html>");
  for (const std::string& path : {folder.path().string(), (folder / "absent").string()}) {
    const auto result = test::assay({"inspect", path});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_TRUE(result.out.empty());
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST(Inspect, AbbreviatesTheArraysOfGguf) {
  ASSAY_CASE_OR_SKIP(path, "models/stories260k/stories260K.gguf");
  const auto result = test::assay({"inspect", path.string(), "--metadata"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("[512 strings]"), std::string::npos) << result.out;
}

// Counts of the published checkpoint (its own header audit); see tests/make_deepseek_v3_sparse.
TEST(Inspect, DeepSeekV3AtTrueScale) {
  ASSAY_CASE_OR_SKIP(tensors, "deepseek-v3-tensors.tsv.gz");
  ASSAY_PROGRAM_OR_SKIP("python3");
  TempDir folder;
  const std::string model = (folder / "DeepSeek-V3").string();
  const auto made = test::run({"python3", test::source_dir().string() + "/tests/make_deepseek_v3_sparse",
                               model, "--cases", test::cases().string()});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const auto result = test::assay({"inspect", model, "--json", (folder / "out.json").string(), "--files"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("2 x 684,531,386,000 elements"), std::string::npos) << result.err;
  const json document = json::parse(test::read_file(folder / "out.json"));
  EXPECT_EQ(document["files"].size(), 163u);
  const json& totals = document["totals"];
  EXPECT_EQ(totals["tensors"], 91'991);
  EXPECT_EQ(totals["elements"], 684'531'386'000);
  EXPECT_EQ(totals["bytes"], 688'574'839'360);
  EXPECT_EQ(totals["types"]["BF16"]["tensors"], 316);
  EXPECT_EQ(totals["types"]["F8_E4M3"]["tensors"], 45'808);
  EXPECT_EQ(totals["types"]["F32"]["tensors"], 45'867);
}

TEST(NameFilter, LooksAtNoMoreOfALongNameThanItsBeginning) {
  const NameFilter filter("(a|b)*c", "");
  EXPECT_FALSE(filter.accepts(std::string(10'000'000, 'a') + "c"));
  EXPECT_TRUE(filter.accepts(std::string(1000, 'a') + "c"));
}

}  // namespace
}  // namespace assay
