// What llama.cpp's code for an architecture takes for granted of a model (src/models/*.cpp: constants, asserts, sizes of
// tensors), and neither its converter nor a key says.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/gguf_loaded.h"
#include "core/model/gguf_own_keys.h"

namespace assay {
namespace gguf_demands_of {
namespace {

std::uint64_t whole(const GgufFacts& facts, std::string_view names, std::uint64_t otherwise) {
  return static_cast<std::uint64_t>(facts.number(names, static_cast<double>(otherwise)));
}
bool is_set(const GgufFacts& facts, std::string_view names, bool otherwise) {
  const ParsedJson* said = facts.find(names);
  return said == nullptr ? otherwise : *said == true;
}
bool has_windows(const ModuleTree& tree) {
  return std::any_of(tree.attention.begin(), tree.attention.end(),
                     [](const AttentionGeometry& g) { return g.window != 0; });
}
// Rows of the first matrix of that role and part; 0: there is none.
std::uint64_t rows_of(const ModuleTree& tree, Role role, Part part) {
  std::uint64_t rows = 0;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (rows == 0 && where.main() && spec.role == role && spec.part == part && !spec.bias &&
        spec.shape.size() == 2)
      rows = spec.input_major ? spec.shape[1] : spec.shape[0];
  });
  return rows;
}

std::string four_hidden(const GgufFacts& facts) {
  const std::uint64_t width = rows_of(facts.tree, Role::mlp_up, Part::dense_mlp);
  if (width == 4 * facts.tree.hidden_size) return {};
  return fmt::format("the MLP is {} wide, and its GGUF always says 4 × {}", width, facts.tree.hidden_size);
}
std::string no_slopes(const GgufFacts& facts) {
  return is_set(facts, "alibi", false) ? "alibi is true, and llama.cpp's falcon rotates" : "";
}
std::string gpt2(const GgufFacts& facts) {
  const std::uint64_t positions = whole(facts, "n_positions", 1024),
                      context = whole(facts, "n_ctx", positions);
  if (context != positions)
    return fmt::format("n_ctx is {} and n_positions {}, of which a GGUF can say but one", context, positions);
  return four_hidden(facts);
}
std::string phi2(const GgufFacts& facts) {
  const AttentionGeometry& g = facts.tree.attention.front();
  if (g.kv_heads != g.heads)
    return fmt::format("{} heads have {} of keys and values, and llama.cpp's phi2 has as many of both",
                       g.heads, g.kv_heads);
  return four_hidden(facts);
}
std::string command_r(const GgufFacts& facts) {
  const bool normed = is_set(facts, "use_qk_norm", false), deep = facts.tree.layers >= 64;
  if (normed == deep) return {};
  return fmt::format(
      "use_qk_norm is {} with {} layers: llama.cpp's command-r has these norms from 64 layers on, and then "
      "always",
      normed, facts.tree.layers);
}
std::string exaone4(const GgufFacts& facts) {
  const bool windows = has_windows(facts.tree), deep = facts.tree.layers == 64;
  if (windows == deep) return {};
  return fmt::format(
      "{} with {} layers: llama.cpp's exaone4 has them in models of 64 layers, and then always",
      windows ? "there are windows" : "there are no windows", facts.tree.layers);
}
std::string twice_hidden(const GgufFacts& facts) {
  const std::uint64_t hidden = facts.tree.hidden_size,
                      inner = whole(facts, "mamba_d_ssm|intermediate_size|d_inner",
                                    whole(facts, "mamba_expand|expand", 2) * hidden);
  if (inner == 2 * hidden) return {};
  return fmt::format("the scan is {} wide, and llama.cpp takes it to be 2 × {}", inner, hidden);
}
std::string expanded_twice(const GgufFacts& facts) {
  const std::uint64_t expand = whole(facts, "mamba_expand|expand", 2);
  return expand == 2 ? "" : fmt::format("mamba_expand is {}, and llama.cpp takes it to be 2", expand);
}
std::string equal_delta_heads(const GgufFacts& facts) {
  const std::uint64_t keys = whole(facts, "linear_key_head_dim", 128),
                      values = whole(facts, "linear_value_head_dim", 128);
  if (keys == values) return {};
  return fmt::format(
      "linear_key_head_dim is {} and linear_value_head_dim {}, of which a GGUF can say but one", keys,
      values);
}
std::string one_kind_of_mlp(const GgufFacts& facts) {
  if (rows_of(facts.tree, Role::mlp_up, Part::dense_mlp) == 0) return {};
  return "a layer is an MLP without experts, which llama.cpp's nemotron_h_moe has not";
}
std::string ernie_experts(const GgufFacts& facts) {
  const std::uint64_t every = whole(facts, "moe_layer_interval", 1),
                      last = whole(facts, "moe_layer_end_index", facts.tree.layers - 1);
  if (every != 1 || last + 1 < facts.tree.layers)
    return "layers without experts lie behind the first ones with, which llama.cpp's ernie4_5-moe has not";
  const std::uint64_t width = rows_of(facts.tree, Role::mlp_up, Part::shared_expert);
  const std::uint64_t said = whole(facts, "intermediate_size", 0) /
                             std::max<std::uint64_t>(whole(facts, "num_key_value_heads", 1), 1);
  if (width == 0 || width == said) return {};
  return fmt::format(
      "shared experts are {} wide, and the GGUF of an ERNIE says intermediate_size / num_key_value_heads, {}",
      width, said);
}
// Layers with windows rotate by the same base there, whatever rope.freq_base_swa says.
std::string one_base(const GgufFacts& facts) {
  const ParsedJson ropes = rope_parameters_of(facts.config);
  const auto windowed = ropes.find("sliding_attention");
  if (windowed == ropes.end() || !has_windows(facts.tree) || !facts.rope.contains("rope_theta")) return {};
  const auto base = windowed->find("rope_theta");
  if (base == windowed->end() || *base == facts.rope["rope_theta"]) return {};
  return fmt::format(
      "layers with windows rotate by the base {} and others by {}: llama.cpp has one for both here",
      base->dump(), facts.rope["rope_theta"].dump());
}
// What is written as yarn_attn_factor is overwritten when a context is made.
std::string usual_yarn(const GgufFacts& facts) {
  const auto factor = facts.rope.find("factor"), given = facts.rope.find("attention_factor");
  if (facts.rope.value("rope_type", "") != "yarn" || factor == facts.rope.end() ||
      given == facts.rope.end() || !given->is_number() || !factor->is_number())
    return {};
  const double usual = 0.1 * std::log(factor->get<double>()) + 1;
  if (std::abs(given->get<double>() - usual) < 1e-5) return {};
  return fmt::format("attention_factor is {}, and llama.cpp takes {:.7g} for YaRN's factor {}", given->dump(),
                     usual, factor->dump());
}
std::string said_ropes(const GgufFacts& facts) {
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (const ParsedJson* said = facts.find(key); said != nullptr && said->is_object() && !said->empty())
      return {};
  }
  return "rope_parameters are not said: the class takes Llama 3's scaling, of which the GGUF would keep "
         "nothing";
}
std::string one_rotary(const GgufFacts& facts) {
  const double part = facts.number("partial_rotary_factor", facts.rope.value("partial_rotary_factor", 0.0));
  const std::uint64_t width = facts.tree.attention.front().qk_head_dim, said = whole(facts, "rotary_dim", 0);
  if (part == 0 || said == 0 || static_cast<std::uint64_t>(part * static_cast<double>(width)) == said)
    return {};
  return fmt::format("rotary_dim is {} and partial_rotary_factor {} of {}, of which a GGUF keeps the first",
                     said, part, width);
}
std::string scaled_embedding(const GgufFacts& facts) {
  if (is_set(facts, "mup_enabled", false)) return {};
  return "mup_enabled is false, and llama.cpp's afmoe scales embeddings always";
}
std::string softcapped(const GgufFacts& facts) {
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    if (facts.number(key, 0) == 0)
      return fmt::format("{} is not said, and llama.cpp's gemma2 caps always", key);
  }
  return {};
}
std::string fitting_sections(const GgufFacts& facts) {
  const auto given = facts.rope.find("mrope_section");
  std::uint64_t pairs = given == facts.rope.end() ? 32 : 0;  // the converter's [11, 11, 10]
  if (given != facts.rope.end())
    for (const ParsedJson& section : *given) pairs += section.get<std::uint64_t>();
  const std::uint64_t width = facts.tree.attention.empty() ? pairs : facts.tree.attention.front().qk_head_dim;
  return pairs <= width
             ? ""
             : fmt::format("mrope_section has {} pairs of dimensions, and a head is {} wide", pairs, width);
}
std::string qwen35(const GgufFacts& facts) {
  const std::string delta = equal_delta_heads(facts);
  return delta.empty() ? fitting_sections(facts) : delta;
}
std::string sections(const GgufFacts& facts) {
  if (facts.rope.contains("mrope_section")) return {};
  return "rope_parameters have no mrope_section, without which llama.cpp loads no model that sees";
}
// The converter takes half of a head to turn where the config is silent, the classes of GLM that sees all of it.
std::string said_part(const GgufFacts& facts) {
  const std::uint64_t turning = hyperparameters(facts.tree).ropes.front().rotary_dim;
  const double part = facts.rope_number("partial_rotary_factor", 0.5);
  if (static_cast<std::uint64_t>(static_cast<double>(facts.head_dim()) * part) == turning) return {};
  return fmt::format(
      "partial_rotary_factor is not said: {} of {} dimensions of a head turn, and the GGUF would "
      "say half of them",
      turning, facts.head_dim());
}
std::string llama4(const GgufFacts& facts) {
  const bool normed = is_set(facts, "use_qk_norm", true), of_128 = facts.tree.experts == 128;
  const bool chunks = has_windows(facts.tree);
  if (chunks && normed == of_128)
    return fmt::format(
        "use_qk_norm is {} with {} experts: llama.cpp's llama4 has no such norm with 128, and else always",
        normed, facts.tree.experts);
  if (!chunks) return {};
  for (const AttentionGeometry& g : facts.tree.attention) {
    if (g.window != 0 && g.window != 8192)
      return fmt::format("chunks are of {} tokens, and llama.cpp's llama4 has 8192", g.window);
  }
  if (!is_set(facts, "attn_temperature_tuning", true) || whole(facts, "floor_scale", 8192) != 8192 ||
      facts.number("attn_scale", 0.1) != 0.1)
    return "attention's temperature is not llama.cpp's: attn_temperature_tuning with floor_scale 8192 and "
           "attn_scale 0.1";
  const ParsedJson* rotated = facts.find("no_rope_layers");
  for (std::size_t i = 0; rotated != nullptr && rotated->is_array() && i < rotated->size(); ++i) {
    if (((*rotated)[i] != 0) != ((i + 1) % 4 != 0))
      return fmt::format("no_rope_layers is not llama.cpp's: of layer {} it is {}", i, (*rotated)[i].dump());
  }
  return {};
}

// Constants of its code ("if the model varies, these parameters need to be read from the model").
std::string minicpm3(const GgufFacts& facts) {
  for (const auto& [key, taken] :
       {std::pair{"scale_emb", 12.0}, {"scale_depth", 1.4}, {"dim_model_base", 256.0}})
    if (facts.number(key, taken) != taken)
      return fmt::format("{} is {}, and llama.cpp's minicpm3 takes {}", key, facts.find(key)->dump(), taken);
  if (const double theta = facts.number("rope_theta", facts.rope.value("rope_theta", 10000.0));
      theta != 10000)
    return fmt::format("rope_theta is {}, and llama.cpp's minicpm3 takes 10000", theta);
  const std::uint64_t context = whole(facts, "max_position_embeddings", 0);
  const auto original = facts.rope.find("original_max_position_embeddings");
  if (facts.rope.contains("long_factor") && original != facts.rope.end() && !original->is_null() &&
      *original != context)
    return fmt::format(
        "rotary frequencies are stretched from {} tokens to {}, with an attention_factor that its GGUF has "
        "no key for",
        original->dump(), context);
  const std::uint64_t heads = whole(facts, "num_attention_heads", 40), width = facts.tree.hidden_size / heads;
  if (whole(facts, "v_head_dim", width) == width) return {};
  return fmt::format("v_head_dim is {}, and llama.cpp's minicpm3 takes hidden_size / num_attention_heads, {}",
                     whole(facts, "v_head_dim", width), width);
}
std::string ling3(const GgufFacts& facts) {
  for (const char* key :
       {"norm_topk_prob", "kda_safe_gate", "kda_lower_bound", "short_conv_kernel_size", "head_dim",
        "rms_norm_eps", "routed_scaling_factor", "first_k_dense_replace", "num_experts_per_tok", "n_group",
        "topk_group", "moe_intermediate_size", "moe_shared_expert_intermediate_size"})
    if (facts.find(key) == nullptr)
      return fmt::format("config.json does not say {}, and so would no key", key);
  if (facts.find("rope_theta") == nullptr && !facts.rope.contains("rope_theta"))
    return "config.json does not say rope_theta, and so would no key";
  if (!is_set(facts, "kda_safe_gate", false) || !(facts.number("kda_lower_bound", -5) < 0))
    return "kda_safe_gate with a kda_lower_bound below 0 is what llama.cpp's bailingmoe3 has, and nothing "
           "else";
  if (const ParsedJson* gates = facts.find("gated_attention_proj_granularity_type");
      gates == nullptr || *gates != "head_wise")
    return "gated_attention_proj_granularity_type is not head_wise, which llama.cpp's bailingmoe3 asks for";
  return {};
}

// A head that is the embedding is written by no converter, and asked for there.
std::string own_head(const GgufFacts& facts) {
  return facts.tree.tied_embeddings ? "the head is the embedding, and llama.cpp asks for one of its own here"
                                    : "";
}
std::string orion(const GgufFacts& facts) {
  const double theta = facts.number("rope_theta", facts.rope.value("rope_theta", 10000.0));
  if (theta != 10000)
    return fmt::format("rope_theta is {}, of which a GGUF of Orion says nothing: llama.cpp takes 10000",
                       theta);
  return own_head(facts);
}
// Its code takes all of a head to rotate, and the converter's key says hidden_size / num_attention_heads of it.
std::string whole_heads(const GgufFacts& facts) {
  const AttentionGeometry& g = facts.tree.attention.front();
  const double part = facts.rope.value("partial_rotary_factor", 1.0);
  if (g.heads * g.qk_head_dim == facts.tree.hidden_size && part == 1) return {};
  return fmt::format("{} of heads {} wide rotate, and llama.cpp's exaone rotates all of hidden_size / heads",
                     part, g.qk_head_dim);
}
std::string deepseek_moe(const GgufFacts& facts) {
  if (facts.tree.experts == 0) return "there are no experts, and llama.cpp's deepseek has them always";
  if (rows_of(facts.tree, Role::mlp_up, Part::shared_expert) == 0)
    return "there are no shared experts, and llama.cpp's deepseek has them always";
  if (is_set(facts, "norm_topk_prob", false))
    return "norm_topk_prob is true, and llama.cpp's deepseek never makes weights add up to 1";
  if (facts.rope.value("rope_type", "default") != "default")
    return fmt::format("rotary positions are scaled ({}), and its GGUF says none",
                       facts.rope["rope_type"].dump());
  return {};
}
std::string ling2(const GgufFacts& facts) {
  if (!is_set(facts, "use_qk_norm", true))
    return "use_qk_norm is false, and llama.cpp's bailingmoe2 has these norms always";
  const std::uint64_t shared = whole(facts, "num_shared_experts", 1),
                      own = whole(facts, "moe_intermediate_size", 0) * shared,
                      said = whole(facts, "moe_shared_expert_intermediate_size", own) * shared,
                      width = rows_of(facts.tree, Role::mlp_up, Part::shared_expert);
  if (width != said)
    return fmt::format("shared experts are {} wide, and llama.cpp would take {}", width, said);
  return own_head(facts);
}

constexpr GgufDemand kDemands[] = {{"gpt2", gpt2},
                                   {"starcoder|falcon|bloom|mpt", four_hidden},
                                   {"falcon", no_slopes},
                                   {"phi2", phi2},
                                   {"command-r", command_r},
                                   {"exaone4", exaone4},
                                   {"mamba", twice_hidden},
                                   {"jamba|granitehybrid", expanded_twice},
                                   {"qwen3next", equal_delta_heads},
                                   {"qwen35|qwen35moe", qwen35},
                                   {"gemma2", softcapped},
                                   {"nemotron_h_moe", one_kind_of_mlp},
                                   {"ernie4_5-moe", ernie_experts},
                                   {"afmoe", scaled_embedding},
                                   {"apertus", said_ropes},
                                   {"minimax-m2|minimax-m3", one_rotary},
                                   {"olmo2|exaone4|mellum", one_base},
                                   {"", usual_yarn},
                                   {"qwen2vl|qwen3vl|qwen3vlmoe", sections},
                                   {"glm4|glm4moe", said_part},
                                   {"llama4", llama4},
                                   {"minicpm3", minicpm3},
                                   {"bailingmoe3", ling3},
                                   {"bailingmoe2", ling2},
                                   {"orion", orion},
                                   {"exaone", whole_heads},
                                   {"deepseek", deepseek_moe}};

}  // namespace
}  // namespace gguf_demands_of

std::span<const GgufDemand> gguf_demands() {
  return gguf_demands_of::kDemands;
}

}  // namespace assay
