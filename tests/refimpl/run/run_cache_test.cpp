// `assay run --kv-cache` and `assay compare caches` as a user runs them.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;

const std::string kLlama = (source_dir() / "data/models/llama").string();
const std::string kTinylm = (source_dir() / "data/tinylm").string();
const std::string kHeldout = (source_dir() / "data/tinylm/heldout.txt").string();
const std::string kTruth = (source_dir() / "data/fixtures/caches/llama.safetensors").string();
const char* kIds = "5,42,79,20,57,94,35,72,13,50,87,28,65,6,43,80,21,58,95,36,73,14,51,88,29,66,7,44,81,22";

json said(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"run", kLlama, "--tokens", kIds, "-n", "20", "--ignore-eos"});
  arguments.insert(arguments.end(), {"--json", "-"});
  const ProcessResult result = assay(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return json::parse(result.out);
}

void expect_refused(const std::vector<std::string>& arguments, const std::string& words) {
  const ProcessResult result = assay(arguments);
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST(RunCache, RoomForEverythingSaysWhatTheFullCacheSays) {
  const json full = said({});
  for (const char* method :
       {"fp8:recent=all", "int8:recent=all", "kivi2:residual=all", "streaming:window=all", "h2o:budget=all",
        "snapkv:budget=all", "pyramidkv:budget=all", "grouped:window=all"})
    EXPECT_EQ(said({"--kv-cache", method})["ids"], full["ids"]) << method;
}

TEST(RunCache, TellsWhatIsHeld) {
  const json document = said({"--kv-cache", "h2o:budget=8"});
  const json& cache = document["kv_cache"];
  EXPECT_EQ(cache["method"], "h2o:budget=8");
  EXPECT_EQ(cache["layers_cut"], 3);
  EXPECT_EQ(cache["texts"][0]["rows"], json::array({8, 8, 8}));
  EXPECT_EQ(cache["texts"][0]["tokens"], 49);
  EXPECT_EQ(cache["texts"][0]["bytes_in_full"], 49 * 192 * 2);
  // Of another model "in full" is the one that it was made of.
  const json grouped = said({"--kv-cache", "grouped:window=4"})["kv_cache"]["texts"][0];
  EXPECT_EQ(grouped["bytes_in_full"], 49 * 192 * 2);
  EXPECT_LT(grouped["bytes"], 49 * 192);
}

TEST(RunCache, RefusesInALine) {
  expect_refused({"run", kLlama, "--tokens", "1,2", "--kv-cache", "h3o"}, "no cache \"h3o\"");
  expect_refused({"run", kTinylm, "-p", "Mira", "--kv-cache", "h2o"}, "one latent a token");
  expect_refused({"run", kLlama, "--tokens", "1,2,3,4", "--kv-cache", "fp8", "--claims"},
                 "texts that are made");
  expect_refused({"run", kLlama, "--tokens", "1,2", "--kv-cache", "fp8", "--speculate", "lookup"},
                 "texts that are made");
  expect_refused(
      {"run", (source_dir() / "data/models/gemma3").string(), "--tokens", "1,2", "--kv-cache", "grouped"},
      "of several kinds already");
  expect_refused({"compare", "caches", kLlama, "--cache", "snapkv:budget=8,window=9"}, "the whole budget");
  expect_refused({"compare", "caches", kLlama, "--tokens", "1,2,3"}, "no 64 to read at once");
  expect_refused({"compare", "caches", kLlama, "--context", "1000"}, "more than the model's context");
  expect_refused({"compare", "caches", kLlama, "--mutants"}, "--mutants goes with --truth");
  expect_refused({"compare", "caches", kLlama, "--truth", kTruth, "--cache", "fp8"},
                 "which methods read which text");
  expect_refused({"compare", "caches", kTinylm, "--truth", kTruth}, "about another model");
  expect_refused({"compare", "caches", kLlama, "--truth", kLlama + "/model.safetensors"}, "no such tensor");
  expect_refused({"compare", "model", kLlama, "--cache", "fp8", "--against", kLlama}, "a model with itself");
}

TEST(CompareCaches, EverythingIsNoDifferenceAndLessIsOne) {
  TempDir folder;
  const std::string page = (folder / "caches.html").string();
  const ProcessResult result = assay({"compare",
                                      "caches",
                                      kLlama,
                                      "--context",
                                      "60",
                                      "--prefill",
                                      "40",
                                      "--trials",
                                      "1",
                                      "--cache",
                                      "h2o:budget=all",
                                      "--cache",
                                      "h2o:budget=8",
                                      "--cache",
                                      "kivi2:residual=32",
                                      "--cache",
                                      "grouped:window=8",
                                      "--html",
                                      page,
                                      "--json",
                                      "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json document = json::parse(result.out);
  EXPECT_EQ(document["schema"], "assay.compare.caches/1");
  const json& caches = document["caches"];
  ASSERT_EQ(caches.size(), 4u);
  EXPECT_EQ(caches[0]["kl_mean"], 0);
  EXPECT_EQ(caches[0]["same_first"], 1);
  EXPECT_EQ(caches[0]["loss"], caches[0]["full_loss"]);
  EXPECT_EQ(caches[0]["positions"], 19);
  for (std::size_t i = 1; i < caches.size(); ++i) {
    EXPECT_GT(caches[i]["kl_mean"], 0) << caches[i]["cache"];
    EXPECT_LT(caches[i]["bytes_a_token"], caches[i]["full_bytes_a_token"]) << caches[i]["cache"];
  }
  EXPECT_EQ(caches[0]["retrieval"], document["retrieval"]["full"]);
  const std::string html = read_file(page);
  EXPECT_NE(html.find("What is still found"), std::string::npos);
  EXPECT_NE(html.find("h2o:budget=8"), std::string::npos);
  EXPECT_NE(html.find("prefers-color-scheme: dark"), std::string::npos);
}

// A model that recalls from anywhere: with all of its cache, or codes of it; a window loses what lies behind it.
TEST(CompareCaches, WhatIsThrownAwayIsNotFoundAnyMore) {
  const fs::path recall = source_dir() / "data/fixtures/caches/recall";
  std::string ids = read_file(recall / "text.ids");
  ids.pop_back();  // its end of line
  const ProcessResult result =
      assay({"compare", "caches", recall.string(), "--tokens", ids, "--context", "128", "--windows", "1",
             "--trials", "2", "--cache", "kivi2:residual=32", "--cache", "streaming:sinks=4,window=28",
             "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json document = json::parse(result.out);
  EXPECT_EQ(document["retrieval"]["lengths"].back(), 124);
  const auto found = [](const json& map, std::size_t depth) { return map[depth].back()["found"].get<int>(); };
  const json &full = document["retrieval"]["full"], &kivi = document["caches"][0]["retrieval"],
             &streaming = document["caches"][1]["retrieval"];
  for (std::size_t depth = 0; depth < 5; ++depth) {
    EXPECT_EQ(found(full, depth), 4) << depth;
    EXPECT_EQ(found(kivi, depth), 4) << depth;
    const bool held = depth == 0 || depth == 4;  // sinks and window
    EXPECT_EQ(found(streaming, depth), held ? 4 : 0) << depth;
    EXPECT_EQ(full[depth].back()["gain"].get<double>() > 3, true);
  }
}

// Of a trained model: codes of eight bits cost little, and what makes no sense for it is told.
TEST(CompareCaches, OfLatentsCodesAreMeasuredAndOthersToldOff) {
  const ProcessResult result = assay({"compare", "caches", kTinylm, "--file", kHeldout, "--context", "64",
                                      "--windows", "1", "--trials", "0", "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json document = json::parse(result.out);
  std::size_t measured = 0;
  for (const json& cache : document["caches"]) {
    if (cache.contains("refused")) continue;
    ++measured;
    EXPECT_LT(cache["kl_mean"], 0.01) << cache["cache"];
    EXPECT_LT(cache["bytes_a_token"], cache["full_bytes_a_token"]);
  }
  EXPECT_EQ(measured, 3u);  // fp8 twice, int8
}

TEST(CompareCaches, HoldsMethodsAgainstTheirRules) {
  const ProcessResult result = assay({"compare", "caches", kLlama, "--truth", kTruth, "--json", "-"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const json document = json::parse(result.out);
  EXPECT_EQ(document["rules"].size(), 15u);
  for (const json& rule : document["rules"]) EXPECT_EQ(rule["holds"], true) << rule;
}

TEST(CompareCaches, NamesPlantedFaults) {
  const ProcessResult result =
      assay({"compare", "caches", kLlama, "--truth", kTruth, "--mutants", "--json", "-"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const json document = json::parse(result.out);
  EXPECT_EQ(document["mutants"].size(), 21u);
  for (const json& fault : document["mutants"]) EXPECT_EQ(fault["caught"], true) << fault;
  const ProcessResult shown = assay({"compare", "caches", kLlama, "--truth", kTruth, "--mutants"});
  EXPECT_NE(shown.out.find("OK: 21 planted faults caught"), std::string::npos) << shown.out;
}

// A truth of another model with the same widths: every method is right, and its full cache already says otherwise.
TEST(CompareCaches, ATruthOfOtherWeightsIsWrongUsage) {
  const TempDir folder;
  std::filesystem::copy(kLlama, folder.path() / "llama");
  const auto file = folder.path() / "llama/model.safetensors";
  std::string bytes = read_file(file);
  for (std::size_t i = bytes.size() - 4000; i < bytes.size(); i += 2) bytes[i] ^= 0x10;
  write_file(file, bytes);
  const ProcessResult result =
      assay({"compare", "caches", (folder.path() / "llama").string(), "--truth", kTruth, "--mutants"});
  EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
  EXPECT_NE(result.err.find("is about another model: of the full cache logits off by"), std::string::npos)
      << result.err;
}

TEST(CompareModel, WithASmallerCachePrintsTheTable) {
  const std::vector<std::string> same = {"--tokens", kIds, "--context", "24", "--json", "-"};
  std::vector<std::string> by_model = {"compare",      "model",     kLlama,     "--cache",
                                       "h2o:budget=4", "--kernels", "reference"},
                           by_caches = {"compare", "caches", kLlama, "--cache", "h2o:budget=4"};
  by_model.insert(by_model.end(), same.begin(), same.end());
  by_caches.insert(by_caches.end(), same.begin(), same.end());
  const ProcessResult one = assay(by_model), other = assay(by_caches);
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(one.out, other.out);
  EXPECT_GT(json::parse(one.out)["caches"][0]["kl_mean"].get<double>(), 0);
}

}  // namespace
}  // namespace assay::test
