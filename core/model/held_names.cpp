#include "core/model/held_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace assay {
namespace {

struct Fused {
  enum class Of : std::uint8_t { heads, compressed_queries, mlp } of;
  std::string_view member, vllm, sglang;
  std::uint64_t part;
};
constexpr Fused kFusedModules[] = {
    {Fused::Of::heads, "q_proj", "qkv_proj", "qkv_proj", 0},
    {Fused::Of::heads, "k_proj", "qkv_proj", "qkv_proj", 1},
    {Fused::Of::heads, "v_proj", "qkv_proj", "qkv_proj", 2},
    {Fused::Of::mlp, "gate_proj", "gate_up_proj", "gate_up_proj", 0},
    {Fused::Of::mlp, "up_proj", "gate_up_proj", "gate_up_proj", 1},
    {Fused::Of::compressed_queries, "q_a_proj", "fused_qkv_a_proj", "fused_qkv_a_proj_with_mqa", 0},
    {Fused::Of::compressed_queries, "kv_a_proj_with_mqa", "fused_qkv_a_proj", "fused_qkv_a_proj_with_mqa", 1},
};
struct Stack {
  std::string_view member, held;
  std::uint64_t part;
};
constexpr Stack kStacks[] = {{"gate_proj", "w13", 0},   {"up_proj", "w13", 1}, {"down_proj", "w2", 0},
                             {"w1", "w13", 0},          {"w3", "w13", 1},      {"w2", "w2", 0},
                             {"gate_up_proj", "w13", 0}};

constexpr std::string_view kHeldFamilies[] = {"llama",       "mistral",  "mixtral",   "qwen2",
                                              "qwen2_moe",   "qwen3",    "qwen3_moe", "deepseek_v2",
                                              "deepseek_v3", "glm4_moe", "phi3"};

// "a.b.c" -> "a.b", "c"
std::pair<std::string_view, std::string_view> split_last(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == name.npos ? std::pair{std::string_view(), name}
                          : std::pair{name.substr(0, dot), name.substr(dot + 1)};
}

// DeepSeek-V2-Lite, whose queries are not compressed, keeps q_proj and kv_a_proj_with_mqa apart.
bool is_fused(Fused::Of of, const ModuleTree& tree) {
  if (of == Fused::Of::mlp) return true;
  return std::all_of(tree.attention.begin(), tree.attention.end(), [&](const AttentionGeometry& attention) {
    const bool latent = attention.kind == AttentionGeometry::Kind::latent;
    return of == Fused::Of::heads ? !latent : latent && attention.q_lora_rank > 0;
  });
}

HeldName of_expert(std::string_view stored, const TensorSpec& spec, std::uint64_t expert) {
  auto [module, component] = split_last(stored);
  if (spec.stacked != 0 && component.find("weight") == component.npos && component != "bias") {
    for (const Stack& stack : kStacks)  // "….experts.gate_up_proj", saved in stacks
      if (stack.member == component)
        return {fmt::format("{}.{}_weight", module, stack.held), 0, stack.part, true};
    return {std::string(stored), 0, 0, true};
  }
  const auto [experts, leaf] = split_last(module);
  const std::string_view all = spec.stacked != 0 ? experts : split_last(experts).first;  // without the number
  for (const Stack& stack : kStacks)
    if (stack.member == leaf)
      return {fmt::format("{}.{}_{}", all, stack.held, component), expert, stack.part, true};
  return {std::string(stored), 0, 0};
}

}  // namespace

HeldName held_name(std::string_view stored, const TensorSpec& spec, std::uint64_t expert,
                   const ModuleTree& tree, HeldNames names) {
  if (names == HeldNames::stored) return {std::string(stored)};
  if (spec.part == Part::routed_expert) return of_expert(stored, spec, expert);
  const auto [module, component] = split_last(stored);
  const auto [parent, leaf] = split_last(module);
  for (const Fused& fused : kFusedModules) {
    if (fused.member != leaf || !is_fused(fused.of, tree)) continue;
    return {fmt::format("{}.{}.{}", parent, names == HeldNames::vllm ? fused.vllm : fused.sglang, component),
            0, fused.part};
  }
  return {std::string(stored)};
}

bool are_names_known(std::string_view family) {
  return std::find(std::begin(kHeldFamilies), std::end(kHeldFamilies), family) != std::end(kHeldFamilies);
}

}  // namespace assay
