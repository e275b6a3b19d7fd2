// Models that scan, under the names of their authors (mamba_ssm, flash-linear-attention): how a config that names no class is
// told, totals of mamba_ssm's own code on the published configs, what is cached, and what is refused. Names and shapes are
// oracle_test.cpp's.
#include <gtest/gtest.h>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "tests/support/described.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using test::described;
using test::expect_refused;

constexpr const char* kMamba = R"({"architectures": ["MambaLMHeadModel"], "vocab_size": 50277, )";

TEST(Scans, MambasAuthorsNameNoClass) {
  const ModelConfig config =
      ModelConfig::read(test::source_dir() / "data" / "fixtures" / "own_code_configs" / "mamba_ssm.json");
  EXPECT_EQ(config.architecture(), "MambaLMHeadModel");
  EXPECT_EQ(describe(config).vocabulary, 104U);  // 101 words, in whole multiples of 8
}

TEST(Scans, MambaHasTheTotalsOfItsOwnCode) {
  const auto total = [](const std::string& keys) { return count(described(kMamba + keys + "}")).total; };
  EXPECT_EQ(total(R"("d_model": 768, "n_layer": 24, "ssm_cfg": {})"), 129'135'360U);     // mamba-130m
  EXPECT_EQ(total(R"("d_model": 2560, "n_layer": 64, "ssm_cfg": {})"), 2'768'345'600U);  // mamba-2.8b
  const std::string hybrid =
      R"("d_model": 2560, "n_layer": 64, "ssm_cfg": {"layer": "Mamba2"}, "attn_layer_idx":
      [9, 18, 27, 36, 45, 56], "attn_cfg": {"causal": true, "d_conv": 4, "head_dim": 128, "num_heads": 30,
      "out_proj_bias": false, "qkv_proj_bias": false, "rotary_emb_dim": 64}, "pad_vocab_size_multiple": 16)";
  EXPECT_EQ(total(hybrid), 2'697'590'880U);  // mamba2attn-2.7b
}

TEST(Scans, LayersThatAttendCacheAndTheOthersKeepAState) {
  const ModuleTree tree = described(
      R"({"architectures": ["GLAForCausalLM"], "hidden_size": 64, "num_hidden_layers": 4, "num_heads": 4,
          "expand_k": 0.5, "expand_v": 2, "use_short_conv": true, "conv_size": 3,
          "attn": {"layers": [1, 3], "num_heads": 8, "num_kv_heads": 2, "window_size": 5}})");
  ASSERT_EQ(tree.attention.size(), 1U);
  EXPECT_EQ(tree.attention[0].layers, (std::vector<std::uint64_t>{1, 3}));
  EXPECT_EQ(tree.attention[0].window, 5U);
  ASSERT_EQ(tree.recurrent.size(), 1U);
  EXPECT_EQ(tree.recurrent[0].layers, (std::vector<std::uint64_t>{0, 2}));
  EXPECT_EQ(tree.recurrent[0].state_values, 4U * 8 * 32);  // heads, keys and values of one
  EXPECT_EQ(tree.recurrent[0].conv_values, 2U * (32 + 32 + 128));
}

TEST(Scans, WhatIsNotDescribedIsRefused) {
  expect_refused(std::string(kMamba) + R"("ssm_cfg": {"layer": "Mamba3"}})", "ssm_cfg.layer");
  expect_refused(std::string(kMamba) + R"("ssm_cfg": {"layer": "Mamba2", "d_ssm": 64}})", "d_ssm");
  expect_refused(std::string(kMamba) + R"("ssm_cfg": 7})", "ssm_cfg");
  expect_refused(R"({"architectures": ["GLAForCausalLM"], "attn": [{"layers": [1]}]})", "attn");
  expect_refused(R"({"architectures": ["GLAForCausalLM"], "expand_k": 0.0001})", "expand_k");
  expect_refused(R"({"architectures": ["HGRNForCausalLM"], "attnres_block_size": 4})", "attnres_block_size");
  expect_refused(R"({"architectures": ["GSAForCausalLM"], "feature_map": "t2r"})", "feature_map");
}

}  // namespace
}  // namespace assay
