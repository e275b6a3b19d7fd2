// `assay paramcount` as a user runs it.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/formats/json.h"
#include "tests/support/paths.h"
#include "tests/support/published_config.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::assay;
using test::TempDir;
using test::write_file;

const ParsedJson* find_module(const ParsedJson& modules, const std::string& name) {
  for (const ParsedJson& module : modules) {
    if (module["name"] == name) return &module;
    if (const ParsedJson* found = find_module(module["children"], name)) return found;
  }
  return nullptr;
}

constexpr const char* kSmall = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "vocab_size": 128, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": false})";

TEST(Paramcount, DeepSeekV3ToTheLastParameter) {
  const fs::path path = test::published_config("DeepSeek-V3");
  const auto result = assay({"paramcount", path.string(), "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const ParsedJson document = parse_json(result.out, "stdout");
  EXPECT_EQ(document["schema"], "assay.paramcount/1");
  EXPECT_EQ(document["total"], 671'026'419'200u);
  EXPECT_EQ(document["active"], 37'552'297'472u);
  EXPECT_EQ(document["active_without_embedding"], 36'625'618'432u);
  EXPECT_EQ(document["mtp"]["own"], 11'610'068'224u);
  EXPECT_EQ(document["mtp"]["duplicates"], 1'853'358'080u);
  const ParsedJson* q = find_module(document["modules"], "queries");
  ASSERT_NE(q, nullptr);
  EXPECT_EQ((*q)["params"], 48'760'320u);
  EXPECT_EQ((*q)["formula"], "7168 × 1536 + 1536 + 1536 × 128 × (128 + 64)");
  EXPECT_EQ((*find_module(document["modules"], "keys and values"))["params"], 20'906'496u);
  EXPECT_EQ((*find_module(document["modules"], "output projection"))["params"], 117'440'512u);
  const ParsedJson* dense = find_module(document["modules"], "dense layers 0-2");
  ASSERT_NE(dense, nullptr);
  EXPECT_EQ((*dense)["params"], 583'483'392u);
  EXPECT_EQ((*dense)["count"], 3u);
  EXPECT_EQ((*find_module(document["modules"], "MoE layers 3-60"))["params"], 11'507'286'272u);
}

TEST(Paramcount, FormulasAreWrittenOut) {
  const fs::path path = test::published_config("DeepSeek-V3");
  const auto result = assay({"paramcount", path.string(), "--formulas"});
  EXPECT_NE(result.out.find("7168 × 1536 + 1536 + 1536 × 128 × (128 + 64) = 48,760,320"), std::string::npos);
  for (const char* number : {"926,679,040", "20,906,496", "117,440,512", "583,483,392", "11,507,286,272",
                             "671,026,419,200", "37,552,297,472", "36,625,618,432", "11,610,068,224"})
    EXPECT_NE(result.out.find(number), std::string::npos) << number;
}

TEST(Paramcount, PlanThatCannotLaunchExitsWithOne) {
  const fs::path path = test::published_config("DeepSeek-V3");
  const auto result = assay({"paramcount", path.string(), "--plan", "tp=32", "--gpu-memory", "48GB"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("intermediate_size 18432/32 = 576 = 4.5 × 128"), std::string::npos);
  EXPECT_NE(result.out.find("assay convert IN OUT --to reblock=64x64"), std::string::npos);
  const auto smaller = assay({"paramcount", path.string(), "--plan", "tp=32", "--gpu-memory", "48GB",
                              "--block", "64x64", "--engine", "sglang"});
  EXPECT_EQ(smaller.exit_code, 0) << smaller.out;
}

TEST(Paramcount, EnginesAreNamedWithTheirVersions) {
  const std::string path = test::published_config("Qwen3-235B-A22B-FP8").string();
  const auto wrong = assay({"paramcount", path, "--plan", "tp=8", "--engine", "tgi"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("vllm (0.11.0"), std::string::npos) << wrong.err;
  const auto newest = assay({"paramcount", path, "--plan", "tp=8", "--engine", "vllm"});
  EXPECT_EQ(newest.exit_code, 0) << newest.out;
  EXPECT_NE(newest.out.find("held against the rules of vLLM 0.33.0"), std::string::npos) << newest.out;
  const auto older = assay({"paramcount", path, "--plan", "tp=8", "--engine", "vllm@0.29"});
  EXPECT_EQ(older.exit_code, 1);
  EXPECT_NE(older.out.find("the rules of 0.25.1, the nearest older one"), std::string::npos) << older.out;
  const auto rules = assay({"paramcount", "--rules", "--engine", "sglang@0.4.10"});
  EXPECT_EQ(rules.exit_code, 0) << rules.err;
  EXPECT_NE(rules.out.find("layers-to-last-stage"), std::string::npos);
  EXPECT_EQ(rules.out.find("layers-to-last-stages"), std::string::npos);
}

TEST(Paramcount, EveryFormatOfASmallModel) {
  const TempDir dir;
  write_file(dir / "config.json", kSmall);
  for (const char* format : {"table", "json", "csv", "md", "html"}) {
    const auto result = assay({"paramcount", dir.path().string(), "--format", format});
    EXPECT_EQ(result.exit_code, 0) << format << result.err;
    const bool grouped = std::string(format) == "table" || std::string(format) == "md";
    const bool total = std::string(format) != "csv";
    EXPECT_NE(result.out.find(!total    ? "131072"
                              : grouped ? "1,246,464"
                                        : "1246464"),
              std::string::npos)
        << format;
  }
  const fs::path page = dir / "page.html";
  EXPECT_EQ(assay({"paramcount", dir.path().string(), "-o", page.string()}).exit_code, 0);
  const std::string html = test::read_file(page);
  EXPECT_TRUE(html.starts_with("<!doctype html>"));
  for (const char* request : {"http-equiv=\"refresh", "src=\"http", "href=\"http", "url(http", "@import"})
    EXPECT_EQ(html.find(request), std::string::npos) << request;
}

TEST(Paramcount, APageOfOneModelOrTwo) {
  const TempDir dir;
  write_file(dir / "First-1B" / "config.json", kSmall);
  write_file(dir / "<img src=x onerror=alert(1)>" / "config.json", kSmall);
  const std::string first = (dir / "First-1B").string(),
                    second = (dir / "<img src=x onerror=alert(1)>").string();
  const fs::path page = dir / "page.html", both = dir / "both.html";
  const auto one = assay({"paramcount", first, "--html", page.string()});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_NE(test::read_file(page).find("\"name\":\"First-1B\""), std::string::npos);
  const auto two = assay({"paramcount", first, second, "--html", both.string()});
  EXPECT_EQ(two.exit_code, 0) << two.err;
  const std::string html = test::read_file(both);
  EXPECT_NE(html.find("\"pair\":["), std::string::npos);
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_NE(html.find("\\u003cimg src=x onerror=alert(1)\\u003e"), std::string::npos);
  EXPECT_EQ(assay({"paramcount", first, "--html", page.string(), "--format", "json"}).exit_code, 2);
  EXPECT_EQ(assay({"paramcount", first, second, "--format", "csv"}).exit_code, 2);
}

TEST(Paramcount, NamesCannotBreakOutOfThePage) {
  const TempDir dir;
  const fs::path folder = dir / "<script>alert(1)<";
  write_file(folder / "config.json", kSmall);
  const auto result = assay({"paramcount", folder.string(), "--format", "html"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.find("<script>alert(1)"), std::string::npos);
}

TEST(Paramcount, CheckpointAgainstConfig) {
  const TempDir dir;
  write_file(dir / "config.json", kSmall);
  // One tensor of the twenty-one: the others are missing, and the verdict is no.
  const std::string json = R"({"model.norm.weight":{"dtype":"BF16","shape":[256],"data_offsets":[0,512]}})";
  write_file(dir / "model.safetensors", test::safetensors_bytes(json, std::string(512, '\0')));
  const auto result = assay({"paramcount", dir.path().string(), "--json", "-"});
  EXPECT_EQ(result.exit_code, 1);
  const ParsedJson document = parse_json(result.out, "stdout");
  EXPECT_EQ(document["checkpoint"]["stored"], 256u);
  EXPECT_EQ(document["checkpoint"]["difference"], 256 - 1'246'464);
  EXPECT_EQ(document["checkpoint"]["missing_tensors"], 20u);
}

// What its ranks hold a plan does not know: of the same model as safetensors it does.
TEST(Paramcount, OfAGgufNoRanksAreTold) {
  const std::string model = (test::source_dir() / "data/models/llama").string(),
                    gguf = model + "/gguf/model.gguf";
  const auto plan_of = [](const std::string& path, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"paramcount", path,    "--plan", "tp=2",
                                          "--engine",   "assay", "--json", "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return parse_json(assay(arguments).out, "stdout")["plan"];
  };
  const ParsedJson told = plan_of(model, {}), of_gguf = plan_of(gguf, {}),
                   in_blocks = plan_of(model, {"--weights", "q8_0"});
  EXPECT_EQ(told["ranks"].size(), 2U);
  EXPECT_FALSE(told.contains("why_no_ranks"));
  for (const ParsedJson* plan : {&of_gguf, &in_blocks}) {
    EXPECT_FALSE(plan->contains("ranks"));
    EXPECT_TRUE(plan->contains("why_no_ranks"));
  }
  const auto text = assay({"paramcount", gguf, "--plan", "tp=2", "--engine", "assay"});
  EXPECT_EQ(text.out.find("Weights of each rank"), std::string::npos);
  EXPECT_NE(text.out.find("of a GGUF no ranks are told"), std::string::npos) << text.out;
}

TEST(Paramcount, DiffNamesWhatOnlyOneHas) {
  const fs::path v3 = test::published_config("DeepSeek-V3");
  const fs::path v32 = test::published_config("DeepSeek-V3.2");
  const auto result = assay({"paramcount", v3.string(), "--diff", v32.string(), "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const ParsedJson document = parse_json(result.out, "stdout");
  EXPECT_EQ(document["right"]["total"].get<std::uint64_t>() - document["left"]["total"].get<std::uint64_t>(),
            851'524'864u);
  bool indexer = false;
  for (const ParsedJson& row : document["modules"])
    indexer = indexer ||
              (row["name"] == "sparse attention indexer" && row["left"].is_null() && row["difference"] > 0);
  EXPECT_TRUE(indexer);
}

// A plan that was asked for is answered, or refused: it was passed by without a word.
TEST(Paramcount, NoPlanIsDropped) {
  const std::string small = test::published_config("Qwen3-0.6B").string(),
                    large = test::published_config("Qwen3-8B").string();
  const auto both = assay({"paramcount", large, small, "--plan", "tp=7", "--gpu-memory", "1GB"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_NE(both.err.find("of one model"), std::string::npos) << both.err;
  EXPECT_EQ(assay({"paramcount", large, small, "--tensors"}).exit_code, 2);
  EXPECT_EQ(assay({"paramcount", large, "--plan", "tp=7", "--gpu-memory", "1GB", "--tensors"}).exit_code, 1);
  EXPECT_EQ(assay({"paramcount", large, "--plan", "tp=8", "--tensors", "--format", "csv"}).exit_code, 0);
}

TEST(Paramcount, APlanSaysWhatItDoesNotLookInto) {
  const std::string model = test::published_config("Qwen3-8B").string();
  const auto at = [&](const char* context) {
    return assay({"paramcount", model, "--plan", "tp=1", "--context", context}).out;
  };
  EXPECT_NE(at("131072").find("beyond max_position_embeddings 40960"), std::string::npos);
  EXPECT_EQ(at("40960").find("beyond max_position_embeddings"), std::string::npos);
  EXPECT_EQ(at("40960").find("vision and audio parts"), std::string::npos);
  const std::string sees = test::published_config("gemma-3-4b-it").string();
  const std::string plan = assay({"paramcount", sees, "--plan", "tp=2"}).out;
  EXPECT_NE(plan.find("how SGLang 0.5.23 lays the vision and audio parts"), std::string::npos);
  EXPECT_EQ(plan.find("how vLLM 0.33.0 lays the vision and audio parts"), std::string::npos);
}

TEST(Paramcount, BytesNobodyToldAreNoConfidentNo) {
  const TempDir dir;
  ParsedJson config = parse_json(test::read_file(test::published_config("Qwen3-8B")), "config.json");
  config["quantization_config"] = {{"quant_method", "hqq"}};
  test::write_file(dir / "config.json", config.dump());
  const auto result = assay({"paramcount", dir / "config.json", "--plan", "tp=1", "--gpu-memory", "10GB"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("what hqq stores is not known, --weights FORM tells it"), std::string::npos)
      << result.out;
  EXPECT_EQ(assay({"paramcount", dir / "config.json", "--plan", "tp=1", "--gpu-memory", "10GB", "--weights",
                   "int4-g128"})
                .exit_code,
            0);
}

TEST(Paramcount, TwoModelsOfWhichOneIsNotWholeAreNoZero) {
  const TempDir dir;
  const fs::path whole = test::source_dir() / "data/models/qwen3";
  fs::create_directories(dir / "bad");
  fs::copy(whole / "model.safetensors", dir / "bad/model.safetensors");
  ParsedJson config = parse_json(test::read_file(whole / "config.json"), "config.json");
  config["num_hidden_layers"] = config["num_hidden_layers"].get<int>() + 1;
  test::write_file(dir / "bad/config.json", config.dump());
  EXPECT_EQ(assay({"paramcount", dir / "bad", whole}).exit_code, 1);
  EXPECT_EQ(assay({"paramcount", whole, dir / "bad"}).exit_code, 1);
  EXPECT_EQ(assay({"paramcount", whole, whole}).exit_code, 0);
}

TEST(Paramcount, HostileConfigsAreOneLineAndExitTwo) {
  const TempDir dir;
  for (const char* text :
       {"", "[]", "{}", "{\"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": -1}",
        "{\"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": 9223372036854775808}",
        "{\"architectures\": [\"NoSuchForCausalLM\"]}"}) {
    write_file(dir / "config.json", text);
    const auto result = assay({"paramcount", (dir / "config.json").string()});
    EXPECT_EQ(result.exit_code, 2) << text;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST(Paramcount, WrongUsageExitsTwo) {
  const TempDir dir;
  write_file(dir / "config.json", kSmall);
  const std::string path = dir.path().string();
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--plan", "auto"},
                                             {"--plan", "tp=x"},
                                             {"--block", "64"},
                                             {"--weights", "fp7"},
                                             {"--kv-dtype", "fp3"},
                                             {"--bandwidth", "fast"},
                                             {"--format", "pdf"},
                                             {"--gpus", "8"}}) {
    std::vector<std::string> all = {"paramcount", path};
    all.insert(all.end(), arguments.begin(), arguments.end());
    EXPECT_EQ(assay(all).exit_code, 2) << arguments[0] << ' ' << arguments.back();
  }
}

}  // namespace
}  // namespace assay
