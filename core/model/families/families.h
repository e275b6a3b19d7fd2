// The table of model families. A new architecture is one new file beside this one and one line in
// known_families.cpp.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/model/config.h"
#include "core/model/families/other_heads.h"
#include "core/model/gguf_family.h"
#include "core/model/module_tree.h"

namespace assay {

struct Family {
  std::string_view name;                            // "qwen3_moe": stable, printed
  std::string_view title;                           // "Qwen3-MoE": for people
  std::span<const std::string_view> architectures;  // config.json architectures[0]
  std::span<const std::string_view> model_types;    // config.json model_type
  std::span<const std::string_view> gguf_architectures;
  // Fills modules, mtp, attention and the model-wide numbers; describe() completes names and defaults.
  void (*describe)(ConfigReader& config, ModuleTree& tree);
  // What its forward pass reads beyond shapes; nullptr: nobody has told.
  Hyperparameters (*hyperparameters)(ConfigReader& config, const ModuleTree& tree) = nullptr;
  const GgufFamily* gguf = nullptr;  // how llama.cpp keeps it; nullptr: it is not written as GGUF
};

std::span<const Family* const> all_families();

// Of a GGUF, whose metadata `config` renames: several may share an architecture. nullptr: none.
const Family* family_of_metadata(const ModelConfig& config);
// Of an architecture that is written and not read back; nullptr: of another.
const GgufFamily* written_as_gguf(std::string_view architecture);
Error not_read_back(const GgufFamily& family);

// That of the whole document, by architecture, else by model_type; nullptr: none. A model around a language model of
// another family (families/sighted.h) has none.
const Family* family_of_whole(const ModelConfig& config);

// A known family's body under another head; nullopt: it has the head of its family, or is no such model.
std::optional<families::OtherHead> head_of_whole(const ModelConfig& config);

// Likewise, or that of the language model in it. Throws Error::input for an unknown one, naming the closest families.
const Family& find_family(const ModelConfig& config);

}  // namespace assay
