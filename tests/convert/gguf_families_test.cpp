// Every family that is written as GGUF, held to the files that llama.cpp's converter makes of the same small model
// (data/make_gguf_families.py): their weights are a rule that both sides know, so that no checkpoint need lie here.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/formats/gguf.h"
#include "tests/convert/convert_support.h"
#include "tests/support/made_families.h"
#include "tests/support/paths.h"
#include "tests/support/tensors.h"

namespace assay {
namespace {

using test::assay;
using test::expect_ok;
using test::make_family_model;
using test::TempDir;

const fs::path kFixtures = test::source_dir() / "data/fixtures/gguf_families";

struct Expected {
  std::string model, type, digest;
};
std::vector<Expected> expected_files() {
  std::vector<Expected> files;
  std::istringstream lines(test::read_file(kFixtures / "EXPECTED.tsv"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    Expected& file = files.emplace_back();
    std::istringstream(line) >> file.model >> file.type >> file.digest;
  }
  return files;
}

TEST(GgufFamilies, FilesAreLlamaCpps) {
  const char* kept = std::getenv("ASSAY_KEEP_GGUF");  // a folder, to look at what differs
  const TempDir dir;
  std::set<std::string> made;
  for (const Expected& file : expected_files()) {
    if (made.insert(file.model).second) make_family_model(file.model, dir / file.model);
    const fs::path out =
        (kept == nullptr ? dir.path() : fs::path(kept)) / (file.model + "." + file.type + ".gguf");
    fs::remove(out);
    const auto result =
        assay({"convert", dir / file.model, out, "--to", "gguf:" + file.type, "--tokenizer-pre", "none"});
    EXPECT_EQ(result.exit_code, 0) << file.model << " " << file.type << result.err;
    if (result.exit_code == 0) {
      EXPECT_EQ(test::sha256(test::read_file(out)), file.digest) << file.model << " " << file.type;
    }
  }
  EXPECT_GE(made.size(), 112u);
}

TEST(GgufFamilies, ThatTowersAreLeftOutIsSaid) {
  const TempDir dir;
  for (const std::string model : {"qwen3_vl", "gemma"}) {
    make_family_model(model, dir / model);
    const auto result = assay(
        {"convert", dir / model, dir / (model + ".gguf"), "--to", "gguf:f16", "--tokenizer-pre", "none"});
    expect_ok(result);
    EXPECT_EQ(
        (result.out + result.err).find("vision, audio and projectors are left out") != std::string::npos,
        model == "qwen3_vl");
  }
}

// llama.cpp takes 1 / √(head width) for the scores of a Gemma, but for those as deep as the 27 B models.
TEST(GgufFamilies, AScaleThatNoKeyKeepsIsRefused) {
  const TempDir dir;
  for (const std::string model : {"gemma2", "gemma3"}) {
    make_family_model(model, dir / model);
    nlohmann::json config = nlohmann::json::parse(test::read_file(dir / model / "config.json"));
    config["query_pre_attn_scalar"] = 256;
    test::write_file(dir / model / "config.json", config.dump());
    const auto result = assay(
        {"convert", dir / model, dir / (model + ".gguf"), "--to", "gguf:f16", "--tokenizer-pre", "none"});
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_NE(result.err.find("query_pre_attn_scalar is 256, which GGUF cannot say: llama.cpp would take 20"),
              std::string::npos)
        << result.err;
  }
}

// What llama.cpp loads nowhere, or computes otherwise (core/model/gguf_loaded.h): a model, a change of its config, and what is said of it.
struct Unloadable {
  std::string model, change, said;
};
const Unloadable kUnloadable[] = {
    {"arcee", R"({"attention_bias": true})", "blk.0.attn_output.bias: llama.cpp's arcee has no such bias"},
    {"ernie4_5", R"({"use_bias": true})", "blk.0.ffn_down.bias: llama.cpp's ernie4_5 has no such bias"},
    {"mamba", R"({"use_bias": true})", "llama.cpp's mamba has no such bias"},
    {"starcoder2", R"({"use_bias": false})", "llama.cpp's starcoder2 asks for blk.0.attn_output.bias"},
    {"gemma", R"({"tie_word_embeddings": false})", "llama.cpp's gemma takes the embedding for the head"},
    {"cohere2", R"({"tie_word_embeddings": false})", "llama.cpp's cohere2 takes the embedding for the head"},
    {"smollm3",
     R"({"rope_parameters": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8}})",
     "rope_freqs.weight: frequencies are stretched one by one, and llama.cpp's smollm3"},
    {"olmo2", R"({"tie_word_embeddings": true})", "llama.cpp's olmo2 asks for one of its own"},
    {"gpt_oss", R"({"tie_word_embeddings": true})", "llama.cpp's gpt-oss asks for one of its own"},
    {"kimi_linear", R"({"tie_word_embeddings": true})", "llama.cpp's kimi-linear asks for one of its own"},
    {"nemotron", R"({"head_dim": 20})", "6 heads of 20 are not the hidden width 48"},
    {"olmoe", R"({"num_key_value_heads": 2})", "6 heads have 2 of keys and values"},
    {"phi", R"({"num_attention_heads": 4})", "4 heads have 2 of keys and values"},
    {"gpt2", R"({"n_ctx": 16})", "n_ctx is 16 and n_positions 40"},
    {"gpt_bigcode", R"({"n_inner": 9})", "the MLP is 9 wide, and its GGUF always says 4 × 16"},
    {"gpt_neox", R"({"rotary_pct": 0.4})", "3 dimensions of a head rotate"},
    {"jamba", R"({"mamba_expand": 3})", "mamba_expand is 3"},
    {"cohere", R"({"use_qk_norm": true})", "use_qk_norm is true with 4 layers"},
    {"qwen3_next", R"({"linear_value_head_dim": 14})",
     "linear_key_head_dim is 10 and linear_value_head_dim 14"},
    {"ernie4_5_moe", R"({"intermediate_size": 27})", "shared experts are 111 wide"},
    {"ernie4_5_moe", R"({"moe_layer_interval": 2})", "layers without experts lie behind"},
    {"hy_v4", R"({"first_k_dense_replace": 2})", "mlp_layer_types has 1 dense layers first"},
    {"hy_v4", R"({"attention_bias": true})", "attention_bias is true"},
    {"hy_v4", R"({"rope_parameters": {"rope_type": "yarn", "factor": 2.0}})", "rope scaling is not default"},
    {"hy_v4", R"({"hc_magnitude": null})", "does not say hc_magnitude"},
    {"dots3_note", R"({"layer_types": ["full_attention", "full_attention", "full_attention", "full_attention",
        "full_attention"]})",
     "layers are all of one kind"},
    {"dots3_note", R"({"use_dsa": false})", "layers without a window have no indexer"},
    {"dots3_note", R"({"moe_shared_expert_intermediate_size": 34})", "shared experts are 34 wide"},
    {"dots3_note", R"({"swa_q_lora_rank": 20})", "swa_q_lora_rank is 20"},
    {"dots3_note", R"({"apply_mla_qkv_lora_rescale": null})", "apply_mla_qkv_lora_rescale is not said"},
    {"glm5_next", R"({"text_config": {"hc_mult": 2}})", "hc_mult is not 4"},
    {"glm5_next", R"({"text_config": {"linear_attn_config": {"num_heads": 2}}})",
     "linear_attn_config.num_heads is not num_attention_heads"},
    {"glm5_next", R"({"text_config": {"index_kpool": 1}})", "index_kpool is below 2"},
    {"afmoe", R"({"mup_enabled": false})", "mup_enabled is false"},
    {"apertus", R"({"rope_scaling": null})", "rope_parameters are not said"},
    {"minimax_m3", R"({"text_config": {"rotary_dim": 8}})",
     "rotary_dim is 8 and partial_rotary_factor 0.5 of 20"},
    {"minimax_m3", R"({"text_config": {"scoring_func": null}})",
     "config.json does not say how experts are scored"},
    {"mellum", R"({"rope_parameters": {"sliding_attention": {"rope_theta": 10000.0}}})",
     "layers with windows rotate by the base 10000.0 and others by 500000.0"},
    {"olmo3-yarn", R"({"rope_parameters": {"full_attention": {"attention_factor": 1.25}}})",
     "attention_factor is 1.25, and llama.cpp takes 1.207944"},
    {"qwen3_vl", R"({"text_config": {"rope_parameters": {"mrope_section": null}}})", "no mrope_section"},
    {"qwen3_5", R"({"text_config": {"rope_parameters": {"mrope_section": [11, 11, 10]}}})",
     "32 pairs of dimensions"},
    {"gemma2", R"({"final_logit_softcapping": null})", "final_logit_softcapping is not said"},
    // Windows elsewhere than llama.cpp has them where a file has no list of them.
    {"gemma2",
     R"({"layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]})",
     "layer 0 sees everything, and a GGUF cannot say so: llama.cpp's gemma2 has windows in all layers but "
     "every 2nd"},
    {"gemma3",
     R"({"layer_types": ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
                   "sliding_attention", "full_attention", "sliding_attention"]})",
     "layer 2 sees everything"},
    {"cohere2",
     R"({"layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]})",
     "layer 1 sees everything"},
    {"gpt_oss",
     R"({"layer_types": ["full_attention", "full_attention", "full_attention", "full_attention"]})",
     "layer 0 sees everything"},
    {"afmoe",
     R"({"layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention"]})",
     "layer 3 has a window"},
    {"llama4",
     R"({"layer_types": ["chunked_attention", "full_attention", "chunked_attention", "full_attention"]})",
     "layer 1 sees everything"},
    {"llama4", R"({"attention_chunk_size": 4096})",
     "chunks are of 4096 tokens, and llama.cpp's llama4 has 8192"},
    {"llama4", R"({"floor_scale": 4096})", "attention's temperature is not llama.cpp's"},
    {"llama4", R"({"no_rope_layers": [1, 0, 1, 0]})",
     "no_rope_layers is not llama.cpp's: of layer 1 it is 0"},
    {"llama4", R"({"use_qk_norm": false})", "use_qk_norm is false with 5 experts"},
    {"exaone4",
     R"({"num_hidden_layers": 8, "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention",
                    "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]})",
     "there are windows with 8 layers: llama.cpp's exaone4 has them in models of 64 layers"},
    {"minicpm3", R"({"scale_depth": 1.0})", "scale_depth is 1.0, and llama.cpp's minicpm3 takes 1.4"},
    {"minicpm3", R"({"scale_emb": 10})", "scale_emb is 10, and llama.cpp's minicpm3 takes 12"},
    {"minicpm3", R"({"v_head_dim": 10})", "v_head_dim is 10"},
    {"minicpm3-longrope", R"({"rope_scaling": {"original_max_position_embeddings": 128}})",
     "stretched from 128 tokens to 256"},
    {"minicpm3", R"({"rope_theta": 50000.0})", "rope_theta is 50000, and llama.cpp's minicpm3 takes 10000"},
    {"minicpm3", R"({"rope_scaling": {"type": "linear", "factor": 4}})",
     "rope scaling \"linear\" has no keys"},
    {"minicpm3", R"({"rope_scaling": {"type": "yarn", "factor": 4}})", "rope scaling \"yarn\" has no keys"},
    {"bailing_moe_v3", R"({"rope_theta": null})", "config.json does not say rope_theta"},
    {"bailing_moe_v3", R"({"kda_lower_bound": null})", "config.json does not say kda_lower_bound"},
    {"bailing_moe_v3", R"({"kda_safe_gate": false})", "kda_safe_gate"},
    {"bailing_moe_v3", R"({"gated_attention_proj_granularity_type": "element_wise"})", "is not head_wise"},
    {"deepseek_v4", R"({"hc_mult": 2})", "hc_mult is 2, and llama.cpp's deepseek4 has 4 streams"},
    {"deepseek_v4", R"({"scoring_func": "sigmoid"})", "scoring_func is not sqrtsoftplus"},
    {"deepseek_v4", R"({"compress_ratios": [0, 8, 128, 4, 4, 0]})", "layer 1 has an entry for 8 tokens"},
    {"deepseek_v4", R"({"index_head_dim": 40})", "index_head_dim is 40"},
    {"deepseek_v4", R"({"swiglu_limit": null})", "config.json does not say swiglu_limit"},
    {"deepseek_v4", R"({"rope_scaling": {"attention_factor": 1.27725887}})",
     "attention_factor is 1.27725887, and llama.cpp's deepseek4 has none"},
    {"deepseek_v4", R"({"mlp_layer_types": ["hash_moe", "moe", "moe", "moe", "moe"]})",
     "mlp_layer_types has \"moe\" in layer 1"},
    {"deepseek_v4", R"({"partial_rotary_factor": 0.5})",
     "qk_rope_head_dim is 8 and partial_rotary_factor 0.5"},
    {"deepseek_v4", R"({"tie_word_embeddings": true})", "the embedding serves as head"},
    {"kimi_k3", R"({"text_config": {"linear_attn_config": {"num_heads": 4}}})",
     "linear_attn_config.num_heads is 4 and num_attention_heads 6"},
    {"kimi_k3", R"({"text_config": {"linear_attn_config": {"use_full_rank_gate": false}}})",
     "has 1 values for 6 heads"},
    {"kimi_k3", R"({"text_config": {"linear_attn_config": {"gate_lower_bound": 0}}})",
     "gate_lower_bound is not below 0"},
    {"kimi_k3", R"({"text_config": {"mla_use_nope": false}})", "mla_use_nope is not true"},
    {"kimi_k3", R"({"text_config": {"moe_router_activation_func": "softmax"}})",
     "moe_router_activation_func is not sigmoid"},
    {"kimi_k3", R"({"text_config": {"num_expert_group": 2}})", "num_expert_group is 2"},
    {"kimi_k3", R"({"text_config": {"hidden_act": "silu"}})", "the activation is \"silu\""},
    {"kimi_k3", R"({"text_config": {"activation_situ_beta": null}})",
     "config.json does not say activation_situ_beta"},
    {"kimi_k3", R"({"text_config": {"attn_res_block_size": null}})",
     "config.json does not say attn_res_block_size"},
    {"kimi_k3", R"({"text_config": {"tie_word_embeddings": true}})", "the embedding serves as head"},
    {"kimi_linear", R"({"num_expert_group": 2})", "num_expert_group is 2"},
    {"minimax_text_01", R"({"layernorm_mlp_alpha": 2})", "layernorm_mlp_alpha is 2"},
    {"minimax_text_01", R"({"layernorm_linear_attention_beta": 2})", "layernorm_linear_attention_beta is 2"},
    {"minimax_text_01", R"({"postnorm": false})", "postnorm is not true"},
    {"minimax_text_01", R"({"shared_intermediate_size": 10})", "there is a shared expert"},
    {"minimax_text_01", R"({"num_attention_heads": 6})", "6 heads are no power of two"},
    {"minimax_text_01", R"({"attn_type_list": [0, 0, 0, 1, 0, 0, 0, 1]})", "layer 3 has softmax attention"},
    {"minimax_text_01", R"({"rotary_dim": null})", "config.json does not say rotary_dim"},
    {"hunyuan_v1_moe-alpha", R"({"rope_scaling": {"alpha": 500.0}})",
     "rope scaling is not Hunyuan-A13B's: alpha 1000"},
    {"ministral3", R"({"text_config": {"rope_parameters": {"mscale": 2.0}}})", "mscale is 2"},
    {"ministral3", R"({"text_config": {"rope_parameters": {"mscale_all_dim": null}}})",
     "rope_parameters do not say mscale_all_dim"},
    {"mistral4", R"({"rope_interleave": false})", "rope_interleave is false"},
    {"mistral4", R"({"q_lora_rank": null})", "q_lora_rank is null with 3 layers"},
    {"youtu", R"({"num_hidden_layers": 27})", "q_lora_rank is said with 27 layers"},
    {"gemma3n", R"({"text_config": {"laurel_rank": 7}})",
     "laurel_rank is 7, and llama.cpp's gemma3n takes 64"},
    {"gemma3n", R"({"text_config": {"num_kv_shared_layers": 4}})",
     "4 of 23 layers read the caches of others, and llama.cpp's gemma3n has 20"},
    {"gemma3n", R"({"text_config": {"final_logit_softcapping": 20}})", "final_logit_softcapping is not 30"},
    {"muse_glimmer", R"({"text_config": {"post_norm_eps": 1e-5}})", "post_norm_eps is 1e-05"},
    {"muse_glimmer", R"({"text_config": {"layer_rope_theta": [0, 5e5, 5e5, 1e4, 0]}})",
     "layer 3 has a window and rotates by 10000"},
    {"glm4v-whole", R"({"text_config": {"rope_parameters": {"partial_rotary_factor": null}}})",
     "partial_rotary_factor is not said: 6 of 6 dimensions of a head turn"},
    {"hy_v3", R"({"attention_bias": true})", "blk.0.attn_output.bias: llama.cpp's hy_v3 has no such bias"},
    {"laguna", R"({"layer_types": ["sliding_attention", "full_attention", "sliding_attention",
                   "sliding_attention", "full_attention"]})",
     "layer 0 has a window"},
    {"laguna", R"({"moe_router_logit_softcapping": 30})", "moe_router_logit_softcapping is 30"},
    {"exaone", R"({"head_dim": 10})", "of heads 10 wide rotate"},
    {"orion", R"({"rope_theta": 50000.0})", "rope_theta is 50000"},
    {"orion", R"({"tie_word_embeddings": true})", "the head is the embedding"},
    {"pangu_embedded", R"({"bias": false})", "asks for blk.0.attn_output.bias"},
    {"plamo3", R"({"layer_types": ["full_attention", "full_attention", "full_attention"]})",
     "layer_types and sliding_window_pattern differ"},
    {"sarvam_moe", R"({"use_qk_norm": false})", "use_qk_norm is false"},
    {"sarvam_moe", R"({"num_shared_experts": 2, "moe_shared_expert_intermediate_size": null})",
     "shared experts are 52 wide, and llama.cpp would take 104"},
    {"deepseek_v1", R"({"norm_topk_prob": true})", "norm_topk_prob is true"},
    {"deepseek_v1", R"({"rope_scaling": {"type": "linear", "factor": 4.0}})", "rotary positions are scaled"},
    {"deepseek_v1", R"({"n_routed_experts": null})", "there are no experts"},
    {"nanbeige", R"({"attention_bias": true})", "llama.cpp's nanbeige has no such bias"},
};

TEST(GgufFamilies, WhatLlamaCppDoesNotLoadIsRefused) {
  const TempDir dir;
  for (const Unloadable& one : kUnloadable) {
    SCOPED_TRACE(one.model + " " + one.change);
    const fs::path folder = dir / one.model, gguf = dir / (one.model + ".gguf");
    fs::remove_all(folder);
    make_family_model(one.model, folder, one.change);
    const auto result = assay({"convert", folder, gguf, "--to", "gguf:f16", "--tokenizer-pre", "none"});
    EXPECT_EQ(result.exit_code, 1) << result.out;
    EXPECT_NE(result.err.find(one.said), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

// Lists that are none, too short, or of something else.
TEST(GgufFamilies, FactorsOfRotationThatAreNoneAreRefused) {
  const TempDir dir;
  for (const std::string change :
       {R"({"rope_scaling": {"long_factor": "x"}})", R"({"rope_scaling": {"short_factor": [1]}})",
        R"({"rope_scaling": {"long_factor": []}})", R"({"rope_scaling": {"type": 7}})",
        R"({"rope_scaling": {"original_max_position_embeddings": "x"}})"}) {
    SCOPED_TRACE(change);
    fs::remove_all(dir / "m");
    make_family_model("minicpm3-longrope", dir / "m", change);
    const auto result =
        assay({"convert", dir / "m", dir / "m.gguf", "--to", "gguf:f16", "--tokenizer-pre", "none"});
    EXPECT_TRUE(result.exit_code == 1 || result.exit_code == 2)
        << result.exit_code << result.out << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_FALSE(fs::exists(dir / "m.gguf"));
  }
}

gguf::KeyValue key_of(const fs::path& file, const std::string& key) {
  const gguf::Header header = gguf::read_header(File::open(file));
  const gguf::KeyValue* found = header.find(key);
  return found == nullptr ? gguf::KeyValue{} : *found;
}

const gguf::Tensor* tensor_of(const gguf::Header& header, const std::string& name) {
  const auto found = std::find_if(header.tensors.begin(), header.tensors.end(),
                                  [&](const gguf::Tensor& tensor) { return tensor.name == name; });
  return found == header.tensors.end() ? nullptr : &*found;
}

// Of DeepSeek-V4 in other forms than FP4, of which the converter makes nothing: tables of tokens stay whole numbers, and
// what mixes the streams stays in float32.
TEST(GgufFamilies, TablesOfTokensAreWholeNumbers) {
  const TempDir dir;
  make_family_model("deepseek_v4", dir / "v4");
  for (const std::string type : {"f32", "f16", "q8_0", "q5_0"}) {
    SCOPED_TRACE(type);
    const fs::path out = dir / ("v4." + type + ".gguf");
    expect_ok(assay({"convert", dir / "v4", out, "--to", "gguf:" + type, "--tokenizer-pre", "none"}));
    const gguf::Header header = gguf::read_header(File::open(out));
    for (const std::string layer : {"blk.0.", "blk.1."}) {
      const gguf::Tensor* table = tensor_of(header, layer + "ffn_gate_tid2eid.weight");
      ASSERT_NE(table, nullptr);
      EXPECT_EQ(table->type, ElementType::I32);
      EXPECT_EQ(table->ne, (std::vector<std::uint64_t>{2, 211}));
      std::vector<std::int32_t> experts(2 * 211);
      File::open(out).read_exactly(header.data_offset + table->offset,
                                   std::as_writable_bytes(std::span(experts)));
      for (std::size_t token = 0; token < 211; ++token)
        EXPECT_EQ(experts[2 * token + 1], (experts[2 * token] + 1) % 6) << token;
      EXPECT_EQ(tensor_of(header, layer + "exp_probs_b.bias"), nullptr);
    }
    EXPECT_EQ(tensor_of(header, "blk.2.ffn_gate_tid2eid.weight"), nullptr);
    if (type == "q5_0") continue;  // llama-quantize's choice
    for (const std::string name : {"blk.3.hc_ffn_fn.weight", "output_hc_fn.weight"})
      EXPECT_EQ(tensor_of(header, name)->type, ElementType::F32) << name;
  }
}

// Where the converter's file would be computed otherwise, the key says what the model means.
TEST(GgufFamilies, KeysSayWhatTheModelMeans) {
  const TempDir dir;
  const auto made = [&](const std::string& model, const std::string& change) {
    make_family_model(model, dir / model, change);
    expect_ok(assay(
        {"convert", dir / model, dir / (model + ".gguf"), "--to", "gguf:f16", "--tokenizer-pre", "none"}));
    return dir / (model + ".gguf");
  };
  // sliding_window_size leaves the query out, sliding_window counts it.
  const auto mimo = made("mimo_v2_flash", R"({"sliding_window": 8, "sliding_window_size": 8})");
  EXPECT_EQ(std::get<std::uint64_t>(key_of(mimo, "mimo2.attention.sliding_window").value), 9u);
  // Without the key llama.cpp caps Gemma 4's logits at 30.
  const auto gemma = made("gemma4-dense", R"({"text_config": {"final_logit_softcapping": null}})");
  EXPECT_EQ(std::get<double>(key_of(gemma, "gemma4.final_logit_softcapping").value), 0);
  // llama.cpp asks for the window that the class would have.
  const auto exaone = made("exaone_moe", R"({"sliding_window": null})");
  EXPECT_EQ(std::get<std::uint64_t>(key_of(exaone, "exaone-moe.attention.sliding_window").value), 4096u);
  // Queries that grow with the length, of which the converter has nothing.
  const auto mistral = made("mistral4", R"({"rope_parameters": {"llama_4_scaling_beta": 0.1}})");
  EXPECT_FLOAT_EQ(
      static_cast<float>(std::get<double>(key_of(mistral, "mistral4.attention.temperature_scale").value)),
      0.1F);
  EXPECT_EQ(std::get<std::uint64_t>(key_of(mistral, "mistral4.attention.temperature_length").value), 4u);
  // scoring_func is lost when transformers saves a config.
  const auto minimax = made("minimax_m2", R"({"scoring_func": null})");
  const auto afmoe = made("afmoe", R"({"route_norm": null})");
  EXPECT_EQ(std::get<bool>(key_of(afmoe, "afmoe.expert_weights_norm").value), true);
  EXPECT_EQ(std::get<std::uint64_t>(key_of(minimax, "minimax-m2.expert_gating_func").value), 2u);
}

TEST(GgufFamilies, WindowsThatLlamaCppHasNotAreANote) {
  const TempDir dir;
  make_family_model("starcoder2", dir / "starcoder2", R"({"sliding_window": 9})");
  const auto result = assay({"convert", dir / "starcoder2", dir / "starcoder2.gguf", "--to", "gguf:f16",
                             "--tokenizer-pre", "none"});
  expect_ok(result);
  EXPECT_NE(
      (result.out + result.err).find("windows of 9 tokens are left out: llama.cpp's starcoder2 has none"),
      std::string::npos)
      << result.out << result.err;
}

// Families that transformers has no class for, held to llama.cpp's own logits (data/check_gguf_loads.py): whole gates of Kimi's
// delta attention with a floor of its decay, latent attention with a gate a head behind the last whole group, and limits of
// experts and shared experts layer by layer.
TEST(GgufFamilies, LogitsAreLlamaCpps) {
  const TempDir dir;
  for (const std::string model : {"bailing_moe_v3", "bailing_moe_v3-lora"}) {
    make_family_model(model, dir / model);
    for (const std::string precision : {"f32", "f64"}) {
      const fs::path file = dir / (model + "." + precision + ".safetensors");
      expect_ok(assay({"run", dir / model, "--tokens", "3,17,42,8,25,31,9,50,12,1,28,40", "-n", "0",
                       "--logits", file, "--precision", precision}));
      const std::vector<double> logits = test::read_tensors(file).at("logits").values;
      std::istringstream lines(
          test::read_file(test::source_dir() / "data/fixtures/gguf_logits" / (model + ".tsv")));
      std::size_t position = 0;
      for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('#')) continue;
        std::istringstream values(line);
        const std::size_t vocabulary = 211;
        for (std::size_t i = 0; i < vocabulary; ++i) {
          double theirs = 0;
          ASSERT_TRUE(values >> theirs);
          // ggml's dot products in float32, over a few dozen terms and layers: 4e-6 were seen.
          ASSERT_NEAR(logits.at(position * vocabulary + i), theirs, 2e-5)
              << model << ", " << precision << ", position " << position << ", token " << i;
        }
        position += 3;
      }
      EXPECT_EQ(position, 12U);
    }
  }
}

}  // namespace
}  // namespace assay
