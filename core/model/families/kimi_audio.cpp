// Kimi-Audio: a Qwen2 whose last layers there are twice, once for text and once for tokens of sound, and what leads Whisper's
// frames into it. The Whisper itself lies in a folder of its own (whisper-large-v3) and is not counted.
#include "core/model/families/all_2026.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

void describe_kimi_audio(ConfigReader& config, ModuleTree& tree) {
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "num_key_value_heads"})
    config.size(key);
  const LlamaKin kin = {.sizes = {.vocabulary = 0, .hidden = 0, .intermediate = 1, .layers = 0, .heads = 0},
                        .bias_keys = "",
                        .bias = true,
                        .output_bias_keys = ""};
  const KinParts parts = describe_kin(config, tree, kin);
  const Quantity hidden = text_width(tree);
  Module speaks = layers("model.mimo_layers.{layer}", "layers that speak",
                         all_layers(read_layers(config, "kimia_mimo_layers", 6)));
  add_pre_norms(speaks, hidden);
  speaks.children = {parts.attend, parts.dense};
  add_tower(tree, std::move(speaks));
  Module rest{"", "what ends them", {}, {}, {}};
  Tower(rest, Part::audio)
      .norm("model.mimo_norm", hidden, false)
      .matrix("mimo_output", hidden, {"vocab_size", tree.vocabulary}, false);
  add_tower(tree, std::move(rest));
  Module adaptor{"model.vq_adaptor.layers", "projector", {}, {}, {}};
  Tower(adaptor, Part::projector)
      .matrix("0", config.size("kimia_adaptor_input_dim", 5120), hidden, true)
      .matrix("3", hidden, hidden, true)
      .norm("4", hidden, true);
  add_tower(tree, std::move(adaptor));
  tree.not_counted.push_back({"the Whisper that hears, in a folder of its own", std::nullopt});
}

constexpr std::string_view kKimiAudioArchitectures[] = {"MoonshotKimiaForCausalLM"},
                           kKimiAudioTypes[] = {"kimi_audio"};

}  // namespace

const Family kKimiAudio = {"kimi_audio",        "Kimi-Audio", kKimiAudioArchitectures, kKimiAudioTypes, {},
                           describe_kimi_audio, nullptr};

}  // namespace assay::families
