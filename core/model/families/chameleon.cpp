// Chameleon: a Llama that norms each head's queries and keys with LayerNorms of their own, and a VQ-GAN's encoder, whose words stand
// among those of text. Source: transformers 5.24 (chameleon).
#include "core/model/families/all_more.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/families/vq_gan.h"

namespace assay::families {
namespace {

using namespace blocks;

void add_norms_of_heads(ConfigReader&, const Decoder& d, Module& attention, Module&) {
  const auto add = [&](const std::string& name, const Quantity& heads, Role role) {
    for (const char* part : {".weight", ".bias"}) {
      attention.tensors.push_back(parameter(name + part, {heads, d.head_dim}, role, Part::attention));
      attention.tensors.back().bias = std::string_view(part) == ".bias";
    }
  };
  add("q_norm", d.heads, Role::q_norm);
  add("k_norm", d.kv_heads, Role::k_norm);
}

void describe_chameleon(ConfigReader& config, ModuleTree& tree) {
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 65536, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32},
       .mlp_bias_keys = "mlp_bias",
       .more = add_norms_of_heads});
  TowerConfig words(config, tree, "vq_config");
  if (!words) return;
  words->require(!words->has("attn_resolutions") && words->text("attn_type", "vanilla") == "vanilla",
                 "attn_resolutions or attn_type: only the middle is described as attending");
  VqGan gan{{"model.vqmodel", "down", "up", "block", {"block_1", "attn_1", "block_2"}},
            words->size("base_channels", 128),
            words->size("latent_channels", 256),
            words->size("in_channels", 3),
            3,
            words->size("embed_dim", 256),
            words->size("num_embeddings", 8192),
            words->numbers("channel_multiplier").value_or(std::vector<std::uint64_t>{1, 1, 2, 2, 4}),
            words->size("num_res_blocks", 2).value(),
            words->flag("double_latent", false)};
  gan.draws = gan.narrowest_attends = false;
  words->require(!gan.multipliers.empty() && gan.multipliers.size() <= 64 && gan.blocks <= 64,
                 "more levels than an image has");
  add_tower(tree, vq_gan(gan));
}

constexpr std::string_view kChameleonArchitectures[] = {"ChameleonForConditionalGeneration",
                                                        "ChameleonForCausalLM"},
                           kChameleonTypes[] = {"chameleon"};

}  // namespace

const Family kChameleon = {"chameleon",     "Chameleon", kChameleonArchitectures,
                           kChameleonTypes, {},          describe_chameleon};

}  // namespace assay::families
