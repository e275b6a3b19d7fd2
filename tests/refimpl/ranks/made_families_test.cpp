// Families told by a table (data/fixtures/kin), three odd variants of each with weights made of their names, cut over
// every grid that their sizes allow: bit for bit one process. And of data/models those whose sizes no number divides,
// with others.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/refimpl/models/kin_families.h"
#include "tests/refimpl/models/made_weights.h"
#include "tests/refimpl/ranks/ranked.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json variants_of(const std::string& family) {
  return json::parse(test::read_file(test::kin_folder() / (family + ".json")));
}

const RankGrid kGrids[] = {{.tp = 2}, {.tp = 3},          {.tp = 4},          {.pp = 2},
                           {.pp = 3}, {.tp = 2, .pp = 2}, {.ep = 2, .dp = 2}, {.tp = 2, .ep = 2},
                           {.dp = 2}, {.ep = 3, .dp = 3}, {.tp = 3, .ep = 3}};

// Whether releases keep some in float32, as a plan knows: made weights are all in BF16.
bool has_float32(const ModuleTree& tree) {
  const WeightFormat format = weight_format("bf16").value();
  const WeightSizes sizes(tree, format);
  bool found = false;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    found = found || (!where.tower && sizes.type_of(spec, 0) == "F32");
  });
  return found;
}

// How many grids the model can be cut into, each of them held against the whole.
std::size_t compare_grids(const fs::path& model, std::span<const RankGrid> grids, Precision precision) {
  const Weights weights(model, 1);
  const bool has_wide = has_float32(weights.tree());
  const auto logits = [&](const RankGrid& grid) {
    RankRunRequest request = test::rank_request(model.string(), precision, grid, 2);
    request.decode = 1;
    const RankRun run = run_ranks(request);
    std::vector<std::uint64_t> held;
    for (const RankReport& rank : run.ranks) held.push_back(rank.held_bytes);
    if (!has_wide) {
      EXPECT_EQ(held, test::planned_bytes(weights, grid)) << grid.text();
    }
    return run.logits;
  };
  const auto whole = logits({});
  std::size_t compared = 0;
  for (const RankGrid& grid : grids) {
    if (!test::refused(model.string(), grid).empty()) continue;
    ++compared;
    EXPECT_TRUE(logits(grid) == whole) << grid.text() << " " << name(precision);
  }
  return compared;
}

class MadeFamilies : public testing::TestWithParam<std::string> {};

TEST_P(MadeFamilies, EveryGridThatDividesIsBitForBitTheWhole) {
  std::vector<RankGrid> grids;
  std::copy_if(std::begin(kGrids), std::end(kGrids), std::back_inserter(grids),
               [](const RankGrid& grid) { return grid.pp == 1 || test::is_computed_in_stages(GetParam()); });
  std::size_t compared = 0;
  for (const json& variant : variants_of(GetParam())) {
    SCOPED_TRACE(variant["config"].dump());
    const test::TempDir place;
    test::put_made_model(place.path(), variant["config"].dump());
    compared += compare_grids(place.path(), grids, Precision::f32);
  }
  RecordProperty("grids", static_cast<int>(compared));
  EXPECT_GE(compared, 2U);
}

INSTANTIATE_TEST_SUITE_P(Families, MadeFamilies, testing::ValuesIn(test::kin_families_over_ranks()),
                         [](const auto& info) { return info.param; });

// ---- of data/models, with sizes that divide

struct Resized {
  const char* model;
  const char* sizes;  // in place of its config's
  std::size_t least;  // grids compared
};

class ResizedModels : public testing::TestWithParam<Resized> {};

TEST_P(ResizedModels, EveryGridIsBitForBitTheWhole) {
  const auto [model, sizes, least] = GetParam();
  json config = json::parse(test::read_file(test::model_folder(model) / "config.json"));
  config.update(json::parse(sizes));
  const test::TempDir place;
  test::put_made_model(place.path(), config.dump());
  const RankGrid grids[] = {{.tp = 2},
                            {.tp = 4},
                            {.tp = 8},
                            {.pp = 2},
                            {.tp = 2, .pp = 2},
                            {.tp = 2, .ep = 2},
                            {.ep = 2, .dp = 2},
                            {.tp = 4, .ep = 8, .dp = 2},
                            {.tp = 2, .pp = 2, .ep = 4, .dp = 2}};
  for (const Precision precision : {Precision::f32, Precision::bf16})
    EXPECT_GE(compare_grids(place.path(), grids, precision), least) << name(precision);
}

INSTANTIATE_TEST_SUITE_P(
    Models, ResizedModels,
    testing::Values(
        Resized{"deepseek-v4",
                R"({"num_attention_heads": 8, "o_groups": 8, "n_routed_experts": 8, "num_hash_layers": 0})",
                9},
        Resized{"glm-moe-dsa", R"({"num_attention_heads": 8, "num_key_value_heads": 8, "n_routed_experts": 8,
                                   "intermediate_size": 64, "moe_intermediate_size": 16})",
                9},
        Resized{"glm4-moe-lite",
                R"({"num_attention_heads": 8, "num_key_value_heads": 8, "n_routed_experts": 8,
                                     "intermediate_size": 64, "moe_intermediate_size": 16})",
                9},
        Resized{"longcat-flash",
                R"({"num_attention_heads": 8, "num_key_value_heads": 8, "n_routed_experts": 8,
                                     "ffn_hidden_size": 64, "expert_ffn_hidden_size": 16})",
                9},
        Resized{"youtu", R"({"num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 64})",
                5},
        Resized{
            "bamba",
            R"({"num_attention_heads": 8, "num_key_value_heads": 4, "intermediate_size": 64, "hidden_size": 64,
                             "mamba_d_head": 16})",
            4}),
    [](const auto& info) { return std::regex_replace(std::string(info.param.model), std::regex("-"), "_"); });

// StableLM's norms of single heads lie apart, told by a head's number.
TEST(MadeStableLm, NormsOfHeadsAreThoseOfTheRank) {
  json config = variants_of("stablelm")[1]["config"];
  config.update({{"qk_layernorm", true},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},
                 {"hidden_size", 32},
                 {"intermediate_size", 64}});
  const test::TempDir place;
  test::put_made_model(place.path(), config.dump());
  const RankGrid grids[] = {{.tp = 2}, {.tp = 4}, {.tp = 2, .pp = 2}};
  EXPECT_EQ(compare_grids(place.path(), grids, Precision::f32), 3U);
}

// Gemma 3n's sparse gates look at whole rows, of which a rank has a part.
TEST(MadeGemma3n, SparseGatesThatRanksShareAreThoseOfTheWhole) {
  json config = variants_of("gemma3n_text")[0]["config"];
  config["intermediate_size"] = {16, 16, 24, 16};
  const test::TempDir place;
  test::put_made_model(place.path(), config.dump());
  const RankGrid grids[] = {{.tp = 2}, {.tp = 2, .pp = 2}};
  EXPECT_EQ(compare_grids(place.path(), grids, Precision::bf16), 2U);
}

// MiniMax M3's index picks blocks of keys for groups of heads: of a group's heads each rank has some, or a rank has
// several groups'. The texts are longer than what is picked.
TEST(MadeMiniMaxM3, BlocksArePickedForTheHeadsOfTheRank) {
  for (const auto& [kv_heads, index_heads] : {std::pair{4, 4}, {4, 2}, {2, 1}, {2, 2}}) {
    json config = variants_of("minimax_m3_vl")[0]["config"];
    json& text = config.contains("text_config") ? config["text_config"] : config;
    text.update({{"num_attention_heads", 4},
                 {"num_key_value_heads", kv_heads},
                 {"intermediate_size", 48},
                 {"dense_intermediate_size", 16},
                 {"shared_intermediate_size", 16},
                 {"num_local_experts", 4}});
    text["sparse_attention_config"]["sparse_num_index_heads"] = index_heads;
    const test::TempDir place;
    test::put_made_model(place.path(), config.dump());
    const RankGrid grids[] = {{.tp = 2}, {.tp = 4}, {.tp = 2, .pp = 2}, {.tp = 2, .ep = 2}};
    for (const Precision precision : {Precision::f32, Precision::bf16})
      EXPECT_EQ(compare_grids(place.path(), grids, precision), 4U) << kv_heads << " " << index_heads;
  }
}

// ---- refusals

bool is_of_sizes(const std::string& line) {
  static const std::regex sizes("divisible|over \\d+ (ranks|stages|groups)|without experts");
  return std::regex_search(line, sizes);
}

TEST(MadeRefusals, AreOfSizesButForThese) {
  std::set<std::string> others;
  for (const std::string& family : test::kin_families_over_ranks())
    for (const json& variant : variants_of(family)) {
      const test::TempDir place;
      test::write_file(place / "config.json", variant["config"].dump());
      const ModuleTree tree = describe(ModelConfig::read(place / "config.json"));
      for (const RankGrid& grid : kGrids)
        for (const std::string& line : refusals_to_run(tree, grid))
          if (!is_of_sizes(line)) others.insert(family + ": " + line);
    }
  EXPECT_EQ(others,
            std::set<std::string>({"nemotron_h_puzzle: layers have different numbers of experts, which are "
                                   "not dealt out"}));
}

}  // namespace
}  // namespace assay
