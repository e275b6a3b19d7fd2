// BAGEL: a Qwen2 with norms of queries and keys that sees through a SigLIP, whose patches are rows of a matrix, and draws: in
// each layer a second set of everything is for the noise it makes an image of. Source: ByteDance's own code
// (github.com/ByteDance-Seed/Bagel), which makes a layer of the class Qwen2MoTDecoderLayer and leaves out the last block of
// the SigLIP that a vit_config of 27 names, as vLLM 0.33 does.
#include "core/model/families/all_more.h"
#include "core/model/families/encoder_towers.h"
#include "core/model/families/hub_forward.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr std::string_view kBagelLayers = "language_model.model.layers.{layer}";

// What draws: no token of text meets it.
Module drawing_layers(const Decoder& d, bool normed) {
  const Quantity queries = d.heads * d.head_dim, keys = d.kv_heads * d.head_dim;
  Module layer = layers(std::string(kBagelLayers), "layers that draw", all_layers(d.layers));
  Tower tower(layer, Part::vision);
  tower.norm("input_layernorm_moe_gen", d.hidden, false)
      .norm("post_attention_layernorm_moe_gen", d.hidden, false)
      .matrix("self_attn.q_proj_moe_gen", d.hidden, queries, true)
      .matrix("self_attn.k_proj_moe_gen", d.hidden, keys, true)
      .matrix("self_attn.v_proj_moe_gen", d.hidden, keys, true)
      .matrix("self_attn.o_proj_moe_gen", queries, d.hidden, false)
      .matrix("mlp_moe_gen.gate_proj", d.hidden, d.intermediate, false)
      .matrix("mlp_moe_gen.up_proj", d.hidden, d.intermediate, false)
      .matrix("mlp_moe_gen.down_proj", d.intermediate, d.hidden, false);
  if (normed) {
    tower.norm("self_attn.q_norm_moe_gen", d.head_dim, false)
        .norm("self_attn.k_norm_moe_gen", d.head_dim, false);
  }
  return layer;
}

// Between the VAE's latents and the language model.
void add_latents(ConfigReader& document, ModuleTree& tree, const Decoder& d) {
  TowerConfig vae(document, tree, "vae_config");
  const Quantity channels = vae ? vae->size("z_channels", 16) : Quantity("z_channels", 16);
  document.require(channels.value() == 16 && (!vae || vae->size("downsample", 8).value() == 8),
                   "vae_config: only FLUX's VAE, of 16 channels, is described");
  const Quantity patch = document.size("latent_patch_size", 2), latent = patch * patch * channels;
  const Quantity side = document.size("max_latent_size", 32);
  const Quantity frequencies("frequencies of a time", 256);
  Module module{"", "from and to latents", {}, {}, {}};
  Tower(module, Part::projector)
      .matrix("time_embedder.mlp.0", frequencies, d.hidden, true)
      .matrix("time_embedder.mlp.2", d.hidden, d.hidden, true)
      .matrix("vae2llm", latent, d.hidden, true)
      .matrix("llm2vae", d.hidden, latent, true)
      .tensor("latent_pos_embed.pos_embed", {side * side, d.hidden});
  add_tower(tree, std::move(module));
  add_flux_autoencoder(tree);
}

void add_bagel_eye(ConfigReader& document, ModuleTree& tree, const Decoder& d) {
  TowerConfig vision(document, tree, "vit_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 768), patch = vision->size("patch_size", 16);
  Module tower = siglip_tower(*vision, "vit_model.vision_model");
  tower.tensors.front().shape = {hidden.value(), (vision->size("num_channels", 3) * patch * patch).value()};
  Repeat& blocks = tower.children.front().repeat;
  constexpr std::uint64_t kNamed = 27;
  if (blocks.indices.size() == kNamed)
    blocks = layers("", "", all_layers(Quantity("num_hidden_layers - 1", kNamed - 1))).repeat;
  add_tower(tree, std::move(tower));
  const Quantity side = document.size("vit_max_num_patch_per_side", 70);
  Module connector{"", "projector", {}, {}, {}};
  Tower(connector, Part::projector)
      .matrix("connector.fc1", hidden, d.hidden, true)
      .matrix("connector.fc2", d.hidden, d.hidden, true)
      .tensor("vit_pos_embed.pos_embed", {side * side, d.hidden});
  add_tower(tree, std::move(connector));
}

void describe_bagel(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {.sizes = {.vocabulary = 151936,
                            .hidden = 4096,
                            .intermediate = 22016,
                            .layers = 32,
                            .heads = 32,
                            .kv_heads = 32},
                  .bias_keys = "",
                  .bias = true,
                  .output_bias_keys = "",
                  .layer_path = kBagelLayers,
                  .frame = frame_under("language_model.model.", "language_model.lm_head")};
  const bool normed = config.flag("qk_norm", true);
  if (normed) kin.heads.qk_norm = QkNorm::per_head;
  const Decoder d = read_decoder(config, tree, kin.sizes);
  describe_kin(config, tree, kin, d);
  const std::string made_of = config.text("layer_module", "Qwen2MoTDecoderLayer");
  const bool draws = made_of == "Qwen2MoTDecoderLayer";
  config.require(draws || made_of == "Qwen2DecoderLayer",
                 "layer_module: layers of the class \"" + made_of + "\" are not described");
  const ModelConfig outer = config.config().document_only();
  ConfigReader document(outer, tree.family);
  if (draws) {
    add_tower(tree, drawing_layers(d, normed));
    add_bare(tree, "language_model.model.norm_moe_gen.weight", {d.hidden});
  }
  if (document.flag("visual_gen", true)) add_latents(document, tree, d);
  if (document.flag("visual_und", true)) add_bagel_eye(document, tree, d);
}

constexpr std::string_view kBagelArchitectures[] = {"BagelForConditionalGeneration"},
                           kBagelTypes[] = {"bagel"};

}  // namespace

const Family kBagel = {"bagel", "BAGEL", kBagelArchitectures, kBagelTypes, {}, describe_bagel, forward_bagel};

}  // namespace assay::families
