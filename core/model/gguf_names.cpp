#include "core/model/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace assay {
namespace {

using Stems = std::vector<std::string_view>;

Stems feed_forward(Role role, Part part) {
  const bool routed = part == Part::routed_expert, shared = part == Part::shared_expert;
  switch (role) {
    case Role::mlp_gate: return {routed ? "ffn_gate_exps" : shared ? "ffn_gate_shexp" : "ffn_gate"};
    case Role::mlp_up: return {routed ? "ffn_up_exps" : shared ? "ffn_up_shexp" : "ffn_up"};
    case Role::mlp_down: return {routed ? "ffn_down_exps" : shared ? "ffn_down_shexp" : "ffn_down"};
    case Role::mlp_gate_up:  // Phi-3 keeps it whole, as ffn_up; stacked experts are split
      return routed ? Stems{"ffn_gate_exps", "ffn_up_exps", "ffn_gate_up_exps"} : Stems{"ffn_up"};
    default: return {};
  }
}

Stems attention(Role role) {
  switch (role) {
    case Role::q: return {"attn_q"};
    case Role::k: return {"attn_k"};
    case Role::v: return {"attn_v"};
    case Role::qkv:  // llama.cpp splits Phi-3's and InternLM2's in some conversions
      return {"attn_qkv", "attn_q", "attn_k", "attn_v"};
    case Role::attention_output: return {"attn_output"};
    case Role::q_norm: return {"attn_q_norm"};
    case Role::k_norm: return {"attn_k_norm"};
    case Role::sinks: return {"attn_sinks"};
    case Role::q_a: return {"attn_q_a"};
    case Role::q_a_norm: return {"attn_q_a_norm"};
    case Role::q_b: return {"attn_q_b"};
    case Role::kv_a: return {"attn_kv_a_mqa"};
    case Role::kv_a_norm: return {"attn_kv_a_norm"};
    case Role::kv_b: return {"attn_kv_b", "attn_k_b", "attn_v_b"};
    case Role::indexer_q: return {"indexer.attn_q_b"};
    case Role::indexer_k: return {"indexer.attn_k"};
    case Role::indexer_k_norm: return {"indexer.k_norm"};
    case Role::indexer_weights: return {"indexer.proj"};
    default: return {};
  }
}

Stems rest_of_layer(Role role) {
  switch (role) {
    case Role::router: return {"ffn_gate_inp"};
    case Role::router_correction: return {"exp_probs_b"};
    case Role::shared_expert_gate: return {"ffn_gate_inp_shexp"};
    case Role::embedding_norm: return {"token_embd_norm"};
    case Role::input_norm: return {"attn_norm"};
    case Role::post_attention_norm: return {"post_attention_norm", "attn_post_norm"};
    case Role::pre_feedforward_norm:  // gpt-oss calls it after what it follows
      return {"ffn_norm", "post_attention_norm"};
    case Role::post_feedforward_norm: return {"post_ffw_norm", "ffn_post_norm"};
    case Role::mtp_embedding_norm: return {"nextn.enorm"};
    case Role::mtp_hidden_norm: return {"nextn.hnorm"};
    case Role::mtp_projection: return {"nextn.eh_proj"};
    default: return {};
  }
}

Stems in_layer(const TensorSpec& spec) {
  if (spec.part == Part::mtp && spec.role == Role::final_norm) return {"nextn.shared_head_norm"};
  if (spec.storage == Storage::duplicate)
    return {spec.role == Role::output_head ? "nextn.shared_head_head" : "nextn.embed_tokens"};
  Stems stems = feed_forward(spec.role, spec.part);
  if (stems.empty()) stems = attention(spec.role);
  if (stems.empty()) stems = rest_of_layer(spec.role);
  return stems;
}

Stems outside_layers(Role role) {
  switch (role) {
    case Role::token_embedding: return {"token_embd"};
    case Role::position_embedding: return {"position_embd"};
    case Role::output_head: return {"output"};
    case Role::final_norm: return {"output_norm"};
    default: return {};
  }
}

}  // namespace

std::vector<std::string> gguf_names(const TensorSpec& spec, std::uint64_t layer) {
  const bool in_a_layer = spec.name.find("{layer}") != std::string::npos;
  const std::string_view kind = spec.bias ? "bias" : "weight";
  std::vector<std::string> names;
  for (const std::string_view stem : in_a_layer ? in_layer(spec) : outside_layers(spec.role)) {
    if (in_a_layer)
      names.push_back(fmt::format("blk.{}.{}.{}", layer, stem, kind));
    else
      names.push_back(fmt::format("{}.{}", stem, kind));
  }
  return names;
}

const GgufOwnName* own_gguf_name(const TensorSpec& spec, const GgufRules& rules) {
  const auto found = std::find_if(rules.names.begin(), rules.names.end(), [&](const GgufOwnName& own) {
    if (!spec.name.ends_with(own.of)) return false;  // whole parts of the name
    const std::size_t begin = spec.name.size() - own.of.size();
    return begin == 0 || spec.name[begin - 1] == '.' || own.of.front() == '.';
  });
  return found == rules.names.end() ? nullptr : &*found;
}

std::string gguf_name_of(std::string_view stem, const std::string& layer, bool bias) {
  const bool says = stem.ends_with(".bias") || stem.ends_with(".weight") || stem.ends_with("!");
  if (!says) return fmt::format("{}{}.{}", layer, stem, bias ? "bias" : "weight");
  return layer + std::string(stem.ends_with("!") ? stem.substr(0, stem.size() - 1) : stem);
}

std::vector<std::string> gguf_names(const TensorSpec& spec, std::uint64_t layer, const GgufFamily* family) {
  const GgufOwnName* own = family == nullptr ? nullptr : own_gguf_name(spec, gguf_rules(*family));
  if (own == nullptr) return gguf_names(spec, layer);
  if (own->name.empty()) return {};
  const bool in_a_layer = spec.name.find("{layer}") != std::string::npos;
  const std::string prefix = in_a_layer ? fmt::format("blk.{}.", layer) : "";
  std::vector<std::string> names;  // "attn_q|attn_k|attn_v": what becomes several
  for (std::size_t begin = 0; begin <= own->name.size();) {
    const std::size_t end = std::min(own->name.find('|', begin), own->name.size());
    names.push_back(gguf_name_of(own->name.substr(begin, end - begin), prefix, spec.bias));
    begin = end + 1;
  }
  return names;
}

}  // namespace assay
