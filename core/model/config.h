// What a model's config says, read with suspicion: config.json or GGUF metadata in, typed values out.
//
// A family (core/model/families/) asks for the values it needs through a ConfigReader. A key that the file
// omits takes the class default of `transformers` for that family, and every default taken is noted, for
// display. Where the class has no default there is no number: an Error names the key and the family. A value
// of the wrong type, negative, or absurdly large is an Error, never a wrap-around.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/model/numbered_names.h"
#include "core/model/quantity.h"

namespace assay {

using ParsedJson = nlohmann::json;  // as core/formats/json.h has it, without its weight

// `quantization_config` in one vocabulary, whatever dialect wrote it. Empty optionals: the config does not
// say.
struct QuantizationConfig {
  std::string method;  // "fp8", "gptq", "awq", "compressed-tensors", "mxfp4", "modelopt", …, "" where unnamed
  std::string
      format;  // modelopt: "NVFP4"; compressed-tensors: "pack-quantized"; gptq: checkpoint_format; fp8: fmt
  std::string scale_format;  // "ue8m0" where scales are powers of two
  std::string activations;   // activation_scheme: "dynamic", "static"
  std::string experts;       // expert_dtype: "fp4", of routed experts alone (DeepSeek V4.1)
  std::optional<std::uint64_t> bits;
  std::optional<std::uint64_t> group_size;  // gptq, awq, compressed-tensors; -1 in the file is absent here
  std::optional<std::uint64_t> block_rows, block_columns;  // weight_block_size
  std::optional<bool> symmetric, activation_order;
  std::optional<bool> nested_scales;  // bitsandbytes: the scales are quantized in turn
  std::string sparsity;               // compressed-tensors sparsity_config.format: "dense", "sparse-bitmask"
  bool transforms_activations = false;  // its transform_config does, while the model runs
  bool whole_rows = false;              // group_size -1: a scale serves a row
  std::vector<std::string> ignored;     // modules_to_not_convert, ignore, exclude_modules: as written
  std::vector<std::string> only;        // of a block's modules these alone: modules_in_block_to_quantize
  bool head = false;                    // the output head is quantized, unless it is among `ignored`
  struct Group {                        // compressed-tensors config_groups
    std::string name, type, strategy, format;
    std::vector<std::string> targets;
    NumberedNames modules;  // of `layers` alone, beside targets
    std::optional<std::uint64_t> bits, group_size, block_rows, block_columns;
    std::optional<bool> symmetric;
    bool whole_rows = false;   // group_size -1
    bool group_index = false;  // actorder "group": the group of each input is stored
  };
  std::vector<Group> groups;
  std::vector<Group> modules;  // with bits and group_size of their own, by name or expression: MLX, GPTQ, …
  // ModelOpt's quantized_layers: an algorithm (format), its group_size, and the modules it is used for.
  std::vector<Group> layers;
};

// Throws Error::input when the object's values have the wrong types.
QuantizationConfig parse_quantization(const ParsedJson& object, const std::filesystem::path& source);

class ModelConfig {
 public:
  enum class Origin { json, gguf };

  // Throws Error::input (with `source` as the file) when the document is no object or names no architecture.
  static ModelConfig from_json(ParsedJson given, const std::filesystem::path& source);
  static ModelConfig read(const std::filesystem::path& config_json);
  // Metadata keys are renamed as config.json spells them (docs/families.md), so that families read one
  // vocabulary. Which tensors there are says what no key does: those of the header, and `stored` (a model may
  // be split, and a Checkpoint keeps the tensors of all parts).
  static ModelConfig from_gguf(const gguf::Header& header, const std::filesystem::path& source,
                               std::span<const CheckpointTensor> stored = {});

  Origin origin() const { return origin_; }
  const std::filesystem::path& source() const { return source_; }
  // "DeepseekV3ForCausalLM", or GGUF's general.architecture; empty where the config has only a model_type.
  const std::string& architecture() const { return architecture_; }
  const std::string& model_type() const { return model_type_; }
  // The object that describes the language model: the document itself, or its text_config, llm_config or
  // thinker_config.text_config, whose path is nested_in() ("" for the document itself).
  const ParsedJson& text() const { return *text_; }
  const ParsedJson& document() const { return *document_; }
  const std::string& nested_in() const { return nested_in_; }

  // Another object of the document ("vision_config") as a config to be read; nullopt where there is none.
  std::optional<ModelConfig> section(std::string_view key) const;
  // Likewise of the object that describes the language model ("linear_attn_config").
  std::optional<ModelConfig> text_section(std::string_view key) const;
  // A list of objects there ("block_configs"), one by one; empty where there is none. Throws Error::input where an
  // entry is no object.
  std::vector<ModelConfig> text_sections(std::string_view key) const;
  // The object that describes the language model, as if it were a config of its own: with its own architecture and type.
  // Whether embeddings are tied the document says where it says anything; or either of the two may; or the document's
  // class ties them where it is silent, whatever text_config says; or the class ties nothing, whatever is said.
  enum class Tied { document_first, either, document_ties, never };
  ModelConfig language_model(Tied tied) const;
  // The document's own keys, beside text_config and its like.
  ModelConfig document_only() const;
  // The same document under another class name.
  ModelConfig with_architecture(std::string architecture) const;

  const std::optional<QuantizationConfig>& quantization() const { return *quantization_; }
  const std::string& dtype() const { return dtype_; }  // "bfloat16"; empty where the config does not say

 private:
  Origin origin_ = Origin::json;
  std::filesystem::path source_;
  std::string architecture_, model_type_, nested_in_, dtype_;
  std::shared_ptr<const ParsedJson> document_, text_;
  // One for the config and all its sections: it names each module of a mixture.
  std::shared_ptr<const std::optional<QuantizationConfig>> quantization_ =
      std::make_shared<const std::optional<QuantizationConfig>>();
};

// A default the config left to the class: "num_key_value_heads", "8".
struct DefaultTaken {
  std::string key;
  std::string value;                    // for people: "8", "128 (= hidden_size / heads)"
  std::optional<std::uint64_t> number;  // of a size or count
};

// Typed reading for one family. `keys` is a name with its aliases, "hidden_size|n_embd|d_model": the first
// that is present and not null wins, and names the value in formulas and errors.
class ConfigReader {
 public:
  static constexpr double kAnyReal = 1e300;

  ConfigReader(const ModelConfig& config, std::string_view family) : config_(config), family_(family) {}

  const ModelConfig& config() const { return config_; }
  bool has(std::string_view keys) const { return find(keys).has_value(); }
  bool is_list(std::string_view keys) const;
  bool is_null(std::string_view keys) const;  // present, and null

  // A dimension: at least 1, at most 2^32 (no real model has a larger one).
  Quantity size(std::string_view keys);  // required
  Quantity size(std::string_view keys, std::uint64_t class_default);
  Quantity size(std::string_view keys, const Quantity& derived_default);  // head_dim = hidden_size / heads
  // null means "there is none"; an absent key takes the class default, which may be none too (q_lora_rank).
  std::optional<Quantity> optional_size(std::string_view keys,
                                        std::optional<std::uint64_t> class_default = {});

  // A count that may be 0.
  std::uint64_t number(std::string_view keys, std::uint64_t class_default);
  std::optional<std::uint64_t> optional_number(std::string_view keys,
                                               std::optional<std::uint64_t> class_default = {});
  bool flag(std::string_view keys, bool class_default);
  std::string text(std::string_view keys, std::string_view class_default);
  // No default of these is noted: no count depends on one. Throws Error::input where the value is no finite
  // number, or outside [least, most].
  std::optional<double> optional_real(std::string_view keys, double least = -kAnyReal,
                                      double most = kAnyReal) const;
  double real(std::string_view keys, double class_default, double least = -kAnyReal,
              double most = kAnyReal) const {
    return optional_real(keys, least, most).value_or(class_default);
  }
  double to_real(const ParsedJson& value, std::string_view key, double least, double most) const;
  const std::string& to_text(const ParsedJson& value, std::string_view key) const;
  std::optional<std::vector<std::uint64_t>> numbers(std::string_view keys);
  std::optional<std::vector<std::string>> texts(std::string_view keys);
  // tie_word_embeddings, also looked for outside a nested text_config.
  bool tied_embeddings(bool class_default);

  // numerator / denominator, which must divide: "hidden_size 4096 is not divisible by num_attention_heads
  // 30".
  Quantity quotient(const Quantity& numerator, const Quantity& denominator, std::string name);
  void require_divides(const Quantity& divisor, const Quantity& dividend);
  // Throws Error::input naming file and family.
  [[noreturn]] void fail(const std::string& message) const;
  void require(bool holds, const std::string& message) const {
    if (!holds) fail(message);
  }

  const std::vector<DefaultTaken>& defaults_taken() const { return defaults_; }

 private:
  struct Value {
    const ParsedJson* json;
    std::string key;  // the alias that was present
  };
  std::optional<Value> find(std::string_view keys) const;  // present and not null
  std::uint64_t to_number(const Value& value) const;
  Quantity to_size(const Value& value) const;
  void took_default(std::string_view keys, std::string value, std::optional<std::uint64_t> number = {});

  const ModelConfig& config_;
  std::string family_;
  std::vector<DefaultTaken> defaults_;
};

}  // namespace assay
