// What the page draws is what the tree and the plans say.
#include "paramcount/page_data.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/published_config.h"
#include "tests/support/support.h"

namespace assay {
namespace {

Json page_of(const std::string& model) {
  return page_data(load_model(test::published_config(model), 1), Question());
}

TEST(Page, StoreysHoldTheModelsParts) {
  const Model model = load_model(test::published_config("DeepSeek-V3"), 1);
  const Json floor = page_data(model, Question())["floor"];
  ASSERT_EQ(floor.size(), 61u);
  std::map<std::string, std::uint64_t> sums;
  for (const Json& storey : floor) {
    for (const char* part : {"mixing", "dense", "shared", "routed"})
      sums[part] += storey[part].get<std::uint64_t>();
    EXPECT_EQ(storey["attention"], "latent attention");
  }
  EXPECT_EQ(floor[2]["experts"], 0);
  EXPECT_EQ(floor[3]["experts"], 256);
  EXPECT_EQ(floor[60]["active_experts"], 8);
  const std::map<std::string, const char*> of_part = {{"routed experts", "routed"},
                                                      {"shared experts", "shared"},
                                                      {"dense MLP", "dense"},
                                                      {"attention", "mixing"}};
  std::size_t met = 0;
  for (const PartRow& part : model.parts) {
    const auto found = of_part.find(part.title);
    if (found == of_part.end()) continue;
    ++met;
    EXPECT_EQ(sums[found->second], part.total) << part.title;
  }
  EXPECT_EQ(met, 4u);
  EXPECT_EQ(sums["routed"], 653'908'770'816u);
}

TEST(Page, StoreysTellKindsOfAttention) {
  const Json gemma = page_of("gemma-3-4b-it")["floor"],
             scout = page_of("Llama-4-Scout-17B-16E-Instruct")["floor"];
  EXPECT_EQ(gemma[0]["attention"], "window attention");
  EXPECT_EQ(gemma[0]["window"], 1024);
  EXPECT_EQ(gemma[5]["attention"], "attention");
  EXPECT_EQ(scout[0]["active_experts"], 1);
  const Json hybrid =
      page_data(load_model(test::published_configs().parent_path() / "configs" / "qwen3_next.json", 1),
                Question())["floor"];
  EXPECT_EQ(hybrid[0]["attention"], "Gated DeltaNet");
}

TEST(Page, TheCurveIsTheCache) {
  const Model model = load_model(test::published_config("Llama-3.1-8B"), 1);
  const Json curve = page_data(model, Question())["curve"];
  EXPECT_EQ(curve["longest"], 131072);
  const Json& points = curve["points"];
  EXPECT_EQ(points.front()[1], 0);
  KvOptions options;
  options.context = 131072;
  EXPECT_EQ(points.back()[0], 131072);
  EXPECT_EQ(points.back()[1], kv_cache(model.tree, options).bytes);
}

// So many GPUs launch, half as many launch in no way.
TEST(Page, GpusAreTheFewest) {
  const Model model = load_model(test::published_config("DeepSeek-V3"), 1);
  const Json machines = page_data(model, Question())["machines"];
  PlanOptions options;
  options.engines = {Engine::vllm};
  options.format = model.format;
  options.context = machines["context"];
  for (const Json& gpu : machines["gpus"]) {
    const Json& fit = gpu["fits"][0];
    ASSERT_FALSE(fit.is_null()) << gpu["name"];
    options.gpu_memory = gpu["gigabytes"].get<std::uint64_t>() * 1'000'000'000;
    const Layout layout = parse_layout(fit["layout"].get<std::string>());
    EXPECT_EQ(layout.ranks(), fit["gpus"]);
    EXPECT_TRUE(make_plan(model.tree, layout, options).launches());
    const auto fewer = fit["gpus"].get<std::uint64_t>() / 2;
    for (std::uint64_t tp = 1; tp <= fewer; tp *= 2) {
      EXPECT_FALSE(make_plan(model.tree, {tp, fewer / tp, 1, 1}, options).launches()) << gpu["name"];
      EXPECT_FALSE(make_plan(model.tree, {tp, fewer / tp, 1, tp}, options).launches()) << gpu["name"];
    }
    const bool h200 = gpu["name"] == "H200";
    EXPECT_EQ(h200 ? fit["layout"] : Json("tp=8"), "tp=8");
  }
}

TEST(Page, NamesComeFromWhereTheModelLies) {
  const test::TempDir dir;
  const std::string config = test::read_file(test::published_config("Qwen3-0.6B"));
  const auto name_of = [&](const fs::path& file) {
    test::write_file(dir / file.string(), config);
    return model_name(load_model(dir / file.string(), 1));
  };
  EXPECT_EQ(name_of("Tiny-1B/config.json"), "Tiny-1B");
  EXPECT_EQ(name_of("Other.json"), "Other");
  EXPECT_EQ(name_of("models--org--Model-7B/snapshots/0123/config.json"), "org/Model-7B");
}

}  // namespace
}  // namespace assay
