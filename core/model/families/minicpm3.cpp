// MiniCPM3: DeepSeek's latent attention in a small dense model with tied embeddings.
#include <cmath>

#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/forward.h"

namespace assay::families {
namespace {

using namespace blocks;

void describe_minicpm3(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 73448, .hidden = 2560, .intermediate = 6400, .layers = 62, .heads = 40, .tied = true},
      HeadDim::unused);
  LatentAttention a;
  a.hidden = d.hidden;
  a.heads = d.heads;
  a.q_rank = config.optional_size("q_lora_rank", 768);
  a.kv_rank = config.size("kv_lora_rank", 256);
  a.nope_dim = config.size("qk_nope_head_dim", 64);
  a.rope_dim = config.size("qk_rope_head_dim", 32);
  a.v_dim =
      config.has("v_head_dim") ? config.size("v_head_dim") : config.quotient(d.hidden, d.heads, "v_head_dim");
  a.bias = config.flag("attention_bias", false);
  GatedMlp mlp = d.mlp();
  mlp.bias = config.flag("mlp_bias", false);
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), gated_mlp(mlp)};
  add_frame(tree, d, {layer});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  tree.attention.back().kv_b_whole = true;
}

// What enters the first layer, what a layer adds, and what the head sees are scaled; null is no scaling.
Hyperparameters read_minicpm3(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {.epsilon = 1e-5, .rope = {.context = 32768}});
  h.embedding_scale = config.real("scale_emb", 12);
  if (!config.is_null("scale_depth"))
    h.residual_scale = config.real("scale_depth", 1.4) / std::sqrt(static_cast<double>(tree.layers));
  if (!config.is_null("dim_model_base"))
    h.head_scale = config.real("dim_model_base", 256, 1e-9) / static_cast<double>(tree.hidden_size);
  return h;
}

constexpr std::string_view kMinicpm3Architectures[] = {"MiniCPM3ForCausalLM"};
constexpr std::string_view kMinicpm3Types[] = {"minicpm3"};

}  // namespace

const Family kMinicpm3 = {"minicpm3",     "MiniCPM3",        kMinicpm3Architectures, kMinicpm3Types,
                          kMinicpm3Types, describe_minicpm3, read_minicpm3};

}  // namespace assay::families
