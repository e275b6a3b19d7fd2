// Mistral Small 3.1 and later, Ministral 3: a Mistral that sees, with Pixtral's tower.
#include "core/model/families/all.h"
#include "core/model/families/kin_forward.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

// The class of Ministral 3 has a head_dim of its own, that of Mistral divides.
std::optional<std::uint64_t> default_head_dim(ConfigReader& config) {
  if (config.text("model_type", "") == "mistral") return std::nullopt;
  return 128;
}

void describe_mistral3(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 131072,
                                  .hidden = 5120,
                                  .intermediate = 32768,
                                  .layers = 40,
                                  .heads = 32,
                                  .kv_heads = 8,
                                  .head_dim = default_head_dim(config)});
  const auto window = config.optional_number("sliding_window");
  const std::string before = is_nested(config) ? "language_model." : "", prefix = before + "model.";
  Module layer = layers(prefix + "layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(d.attention()), gated_mlp(d.mlp())};
  add_frame(tree, d, {layer}, frame_under(prefix, before + "lm_head"));
  add_geometry(tree, d.attention(), d.layers, window ? all_layers(d.layers) : std::vector<std::uint64_t>{},
               window.value_or(0));
  add_pixtral_vision(config, tree, d.hidden);
  if (!is_nested(config)) return;
  tree.aliases.push_back({"language_model.model.", "model.language_model."});
  tree.aliases.push_back({"language_model.lm_head.", "lm_head."});
  tree.aliases.push_back({"vision_tower.", "model.vision_tower."});
  tree.aliases.push_back({"multi_modal_projector.", "model.multi_modal_projector."});
}

constexpr std::string_view kMistral3Architectures[] = {"Mistral3ForConditionalGeneration",
                                                       "Ministral3ForCausalLM"};
constexpr std::string_view kMistral3Types[] = {"mistral3", "ministral3"};

}  // namespace

const Family kMistral3 = {"mistral3",
                          "Mistral Small 3.1, Ministral 3",
                          kMistral3Architectures,
                          kMistral3Types,
                          {},
                          describe_mistral3,
                          forward_mistral3};

}  // namespace assay::families
