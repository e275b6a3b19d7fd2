// MiniMax-M2, M2.1, M2.5: grouped attention with q and k normed over their full width, Mixtral's names for
// experts, DeepSeek-V3's bias for choosing them.
#include <fmt/format.h>

#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/mixture_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

void describe_minimax_m2(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 200064,
                                  .hidden = 3072,
                                  .intermediate = 1536,
                                  .layers = 62,
                                  .heads = 48,
                                  .kv_heads = 8,
                                  .head_dim = 128});
  HeadAttention a = d.attention();
  if (config.flag("use_qk_norm", true)) a.qk_norm = QkNorm::full_width;
  Mixture m{d.hidden, read_experts(config, tree, "num_local_experts", 256, "num_experts_per_tok", 8),
            d.intermediate};
  m.path = "block_sparse_moe";
  m.gate = "w1", m.up = "w3", m.down = "w2";
  if (config.flag("use_routing_bias", true)) m.correction = "e_score_correction_bias";
  config.require(config.number("shared_intermediate_size", 0) == 0,
                 "shared_intermediate_size is not 0: no published MiniMax-M2 has a shared expert");
  Module layer = layers("model.layers.{layer}", "MoE layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), mixture(m)};
  add_frame(tree, d, {layer});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  const std::uint64_t modules =
      config.has("use_mtp") && config.flag("use_mtp", false) ? config.number("num_mtp_modules", 0) : 0;
  if (modules > 0) {
    tree.not_counted.push_back(
        {fmt::format("{} MTP modules the config names; published checkpoints hold none", modules),
         std::nullopt});
  }
}

constexpr std::string_view kMinimaxM2Architectures[] = {"MiniMaxM2ForCausalLM"};
constexpr std::string_view kMinimaxM2Types[] = {"minimax_m2"};
constexpr std::string_view kMinimaxM2Gguf[] = {"minimax-m2"};

}  // namespace

const Family kMinimaxM2 = {"minimax_m2",   "MiniMax-M2",        kMinimaxM2Architectures, kMinimaxM2Types,
                           kMinimaxM2Gguf, describe_minimax_m2, forward_minimax_m2};

}  // namespace assay::families
