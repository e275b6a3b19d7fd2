// Vision and audio towers of published models, into ModuleTree::towers. Each reads the config's own object for it and
// adds nothing where the config has none (a text model alone).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/model/blocks.h"

namespace assay::families {

// Whether the language model is a part of the document (text_config), and so published under a prefix of its own.
inline bool is_nested(const ConfigReader& config) {
  return !config.config().nested_in().empty();
}

// Whether embeddings are tied where the class has the document say so or text_config, which by default do not, or both do.
bool tied_in_either(const ConfigReader& config, bool class_default);

// A tower's own object of the config, to be read like any config; what its class has by default is noted as
// "vision_config.depth" when this goes.
class TowerConfig {
 public:
  TowerConfig(ConfigReader& config, ModuleTree& tree, std::string key);
  ~TowerConfig();
  TowerConfig(const TowerConfig&) = delete;
  TowerConfig& operator=(const TowerConfig&) = delete;
  explicit operator bool() const { return reader_.has_value(); }
  ConfigReader* operator->() { return &*reader_; }
  ConfigReader& operator*() { return *reader_; }

 private:
  ModuleTree& tree_;
  std::string key_;
  std::optional<ModelConfig> section_;
  std::optional<ConfigReader> reader_;
};

// Qwen3-VL, Qwen3.5: learned positions, LayerNorms, mergers of patches, some of them deep in the stack.
// How many of these the class has by default: deep_default. Qwen3-Omni keeps the mergers' parts in lists.
enum class QwenMergers { named, lists };
void add_qwen_vision(ConfigReader& config, ModuleTree& tree, const std::string& path,
                     std::uint64_t deep_default, QwenMergers mergers = QwenMergers::named);
void add_moss_vision(ConfigReader& config, ModuleTree& tree);
// Ling 3's: Qwen3-VL's without mergers deep in the stack, whose last one is a norm, and a projector of two matrices.
void add_ling_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden);
// Qwen2-VL, and with windows, RMSNorms and gates Qwen2.5-VL.
void add_qwen2_vision(ConfigReader& config, ModuleTree& tree, const std::string& path, bool windowed);
// Qwen2-VL's without its merger.
Module qwen2_encoder(ConfigReader& vision, const std::string& path, bool windowed);
void add_siglip_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden);  // Gemma 3
void add_llama4_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden);
void add_moonvit(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden);  // Kimi K2.5, K3
// Its tower alone, and as how many patches wide it is joined for the projector.
Module moonvit_tower(ConfigReader& vision, std::string path);
Quantity moonvit_joined(ConfigReader& vision);
void add_minimax_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden);  // MiniMax-M3
void add_gemma4_towers(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden);
void add_pixtral_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden);  // Mistral 3
// GLM-4V-9B, CogVLM; text_width is that of the language model's MLPs. A convolution joins four patches: into the width of the
// text, or of what is seen; or none does.
enum class EvaJoins { into_text, alike, none };
struct EvaPlace {
  std::string path = "transformer.vision";
  EvaJoins joins = EvaJoins::into_text;
};
void add_eva_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden,
                    const Quantity& text_width, const EvaPlace& place = {});
void add_step_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden);  // Step 3.7
void add_mimo_towers(ConfigReader& config, ModuleTree& tree);  // MiMo-V2.5, -V2-Omni; mimo_towers.cpp

}  // namespace assay::families
