// Sarvam's mixtures: the 30B is Ling 2 under other sizes, the 105B has latent attention. Sources: vLLM 0.32's sarvam.py,
// llama.cpp's conversion/bailingmoe.py, Sarvam's configuration classes.
#include "core/model/families/all_mixtures.h"
#include "core/model/families/bailing.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/own_code_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

void describe_sarvam_moe(ConfigReader& config, ModuleTree& tree) {
  describe_ling(config, tree,
                {.sizes = {.vocabulary = 262144,
                           .hidden = 4096,
                           .intermediate = 8192,
                           .layers = 19,
                           .heads = 16,
                           .kv_heads = 4,
                           .head_dim = 256},
                 .experts = {.count = 128, .width = 1024, .active = 6, .shared = LingShared::own_width},
                 .dense_first = 1});
}

void describe_sarvam_mla(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {
      .sizes = {.vocabulary = 262144, .hidden = 4096, .intermediate = 16384, .layers = 32, .heads = 64},
      .latent = LatentDefaults{.q_rank = std::nullopt},
      .experts = ExpertKin{.count_keys = "num_experts|n_routed_experts|num_local_experts",
                           .count = 128,
                           .active_keys = "num_experts_per_tok",
                           .active = 8,
                           .width_keys = "moe_intermediate_size",
                           .width = 2048,
                           .shared_keys = "num_shared_experts",
                           .shared = 1}};
  if (config.flag("moe_router_enable_expert_bias", true))
    kin.experts->names.correction = "gate.e_score_correction_bias";
  const auto own = config.optional_number("moe_shared_expert_intermediate_size");
  config.require(
      !own || own == config.optional_number("moe_intermediate_size", 2048),
      "moe_shared_expert_intermediate_size is not moe_intermediate_size: such shared experts are not "
      "described");
  const Decoder d = read_decoder(config, tree, kin.sizes, HeadDim::unused);
  const std::uint64_t dense = config.number("first_k_dense_replace", 1),
                      every = config.size("moe_layer_freq", 1).value();
  describe_kin(config, tree, kin, d, [=](std::uint64_t i) { return i >= dense && (i - dense) % every == 0; });
}

constexpr std::string_view kSarvamMoeArchitectures[] = {"SarvamMoEForCausalLM"},
                           kSarvamMoeTypes[] = {"sarvam_moe"};
constexpr std::string_view kSarvamMlaArchitectures[] = {"SarvamMLAForCausalLM"},
                           kSarvamMlaTypes[] = {"sarvam_mla"};

}  // namespace

const Family kSarvamMoe = {"sarvam_moe", "Sarvam with experts", kSarvamMoeArchitectures, kSarvamMoeTypes,
                           {},           describe_sarvam_moe,   forward_sarvam_moe};
const Family kSarvamMla = {"sarvam_mla",
                           "Sarvam with latent attention",
                           kSarvamMlaArchitectures,
                           kSarvamMlaTypes,
                           {},
                           describe_sarvam_mla,
                           forward_sarvam_mla};

}  // namespace assay::families
