// Models that see: a language model that is a family of its own, an image encoder, and a projector between them. The
// language model is described by its family out of text_config; here stands what is around it.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay::families {

// What names begin with in checkpoints: as releases before transformers 4.52 had them, and it still saves them
// ("language_model.model.layers", "vision_tower"), or as later classes do ("model.language_model.layers",
// "model.vision_tower"). Qwen's omni models keep the names of a language model alone, as a whole behind "thinker.",
// others behind a word of their own (`before`), and an embedder has the base class alone behind "language_model.".
enum class SightedNames { language_model_first, model_first, text_model, as_alone, thinker, own, headless };

struct Sighted {
  std::string_view title;  // "LLaVA"
  std::span<const std::string_view> architectures, model_types;
  SightedNames names = SightedNames::model_first;
  ModelConfig::Tied tied = ModelConfig::Tied::document_first;
  // Adds what is beside the language model; `document` reads the document's own keys, beside text_config.
  void (*add_towers)(ConfigReader& document, ModuleTree& tree) = nullptr;
  // Where the language model must stand ("thinker_config.text_config"), of an architecture that two codes save. "": anywhere.
  std::string_view within = {};
  std::string_view before = {};  // of SightedNames::own: "language."
  // The family of the language model where no model_type of its own tells it: its keys stand in the document itself,
  // or its section names a type that is the whole's. nullptr: the section's model_type always tells.
  std::string_view (*text_family)(const ModelConfig& config) = nullptr;
  // false: it has that family's tensors, and computes something else with them.
  bool computed = true;
  // What stands outside the object that has the language model's section ("talker_config" beside thinker_config).
  void (*add_beside)(ConfigReader& whole, ModuleTree& tree) = nullptr;
  // A section and a key of it that tell it from another of the same architecture. "": nothing does.
  std::array<std::string_view, 2> told_by = {};
};

// The tables beside that of those with a class in transformers (sighted.cpp): of those whose code stands beside their
// weights, by two hands (sighted_own_code.cpp, sighted_own.cpp), of those that hear (sighted_sound.cpp), and of those that
// llama.cpp and MLX run (sighted_local.cpp).
std::span<const Sighted> sighted_own_code();
std::span<const Sighted> models_that_hear();
std::span<const Sighted> models_of_own_code();
std::span<const Sighted> models_run_locally();

// By architecture, or by the document's model type where it names none. nullptr: not one of them.
const Sighted* find_sighted(const ModelConfig& config);

// Completed names as this model's checkpoints have them, and its towers. nullptr: an architecture that nobody described
// whose language model is known; what else it has is noted as not counted.
void add_sight(const Sighted* sighted, const ModelConfig& config, ModuleTree& tree);

}  // namespace assay::families
