// Which layers see all, where a config has no layer_types: by keys of its family, as transformers' configuration classes
// (5.24) fill layer_types from them.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "tests/support/described.h"

namespace assay {
namespace {

using test::tree_of;
using Layers = std::vector<std::uint64_t>;

Layers layers_that_see_all(const ModuleTree& tree) {
  Layers layers;
  for (const AttentionGeometry& g : tree.attention)
    if (g.window == 0) layers.insert(layers.end(), g.layers.begin(), g.layers.end());
  std::sort(layers.begin(), layers.end());
  return layers;
}

TEST(WindowKeys, LayersThatSeeAllAreThoseOfTransformers) {
  struct Case {
    const char* architecture;
    std::string keys;
    Layers all;
  };
  const Case cases[] = {
      {"AfmoeForCausalLM", "", {3, 7, 11}},
      {"AfmoeForCausalLM", R"("global_attn_every_n_layers": 3)", {2, 5, 8, 11}},
      {"Cohere2ForCausalLM", R"("sliding_window_pattern": 3)", {2, 5, 8, 11}},
      {"Cohere2MoeForCausalLM", R"("sliding_window_pattern": 3)", {2, 5, 8, 11}},
      {"Cohere2MoeForCausalLM", R"("first_k_dense_replace": 2)", {0, 1, 5, 9}},
      {"Cohere2MoeForCausalLM",
       R"("first_k_dense_replace": 3, "prefix_dense_sliding_window_pattern": 2, "sliding_window_pattern": 5)",
       {1, 7}},
      {"Exaone4ForCausalLM", R"("sliding_window_pattern": 5)", {4, 9}},
      {"ExaoneMoeForCausalLM", R"("sliding_window_pattern": 5)", {4, 9}},
      {"BeamForCausalLM", "", {5, 11}},
      {"BeamForCausalLM", R"("num_hidden_layers": 10)", {5, 9}},
      {"Llama4ForCausalLM", R"("num_hidden_layers": 5)", {3}},
      {"Llama4ForCausalLM", R"("num_hidden_layers": 5, "attention_chunk_size": null)", {0, 1, 2, 3, 4}},
  };
  for (const Case& c : cases) {
    const std::string layers = c.keys.find("num_hidden_layers") == std::string::npos
                                   ? std::string(c.keys.empty() ? "" : ", ") + R"("num_hidden_layers": 12)"
                                   : "";
    EXPECT_EQ(layers_that_see_all(tree_of(c.architecture, c.keys + layers)), c.all)
        << c.architecture << " " << c.keys;
  }
}

TEST(WindowKeys, LayerTypesComeFirst) {
  const ModuleTree tree = tree_of("ExaoneMoeForCausalLM", R"("num_hidden_layers": 2,
      "sliding_window_pattern": "LLLG", "layer_types": ["full_attention", "sliding_attention"])");
  EXPECT_EQ(layers_that_see_all(tree), Layers{0});
  EXPECT_THROW(tree_of("AfmoeForCausalLM", R"("global_attn_every_n_layers": 0)"), Error);
  EXPECT_THROW(tree_of("ExaoneMoeForCausalLM", R"("sliding_window_pattern": "LLLG")"), Error);
}

}  // namespace
}  // namespace assay
