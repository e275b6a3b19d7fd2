// What distinguishes the families that gguf_export and gguf_import know. Sources: transformers'
// configuration classes (the defaults), llama.cpp's conversion/*.py (the rest).
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay {

struct GgufFamily {
  std::string_view family;           // ModuleTree::family
  std::string_view architecture;     // general.architecture
  std::string_view hf_class;         // "LlamaForCausalLM"
  std::string_view class_defaults;   // of the config class, as JSON; what config.json leaves out
  bool paired_heads = false;         // q and k rows are stored in pairs (HeadRows)
  bool head_dim_from_width = false;  // the class derives head_dim, so that key_length is always written
  enum class Vocabulary { byte_level, sentencepiece_first } vocabulary = Vocabulary::byte_level;
};

// nullptr: not among the families that can be written as GGUF.
const GgufFamily* gguf_family(const ModuleTree& tree);
const GgufFamily* gguf_family(std::string_view family);

// Values of config.json, else the class's; null counts as absent.
class GgufParameters {
 public:
  GgufParameters(const ModelConfig& config, const GgufFamily& family);
  const ParsedJson* find(std::initializer_list<std::string_view> keys) const;
  std::uint64_t size(std::string_view key) const;  // throws Error::input where it is absent or no size
  const ParsedJson& rope() const { return rope_; }
  std::uint64_t head_dim() const;  // config.json's, else width / heads

 private:
  const ModelConfig& config_;
  ParsedJson defaults_, rope_;
};

}  // namespace assay
