// GGUF metadata as a config: `<architecture>.embedding_length` and its kin under the names config.json uses,
// by the table of gguf_keys.h; what no key says, by the tensors there are.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/formats/gguf.h"
#include "core/formats/json.h"
#include "core/model/config.h"
#include "core/model/gguf_keys.h"
#include "core/model/gguf_mirror.h"
#include "core/system/error.h"

namespace assay {
namespace {

using TensorNames = std::set<std::string_view>;

TensorNames names_of(const gguf::Header& header, std::span<const CheckpointTensor> stored) {
  TensorNames names;
  for (const gguf::Tensor& tensor : header.tensors) names.insert(tensor.name);
  for (const CheckpointTensor& tensor : stored) names.insert(tensor.name);
  return names;
}

bool is_common(const std::vector<std::int64_t>& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](std::int64_t value) { return value >= 0 && value == values.front(); });
}

class Renamer {
 public:
  Renamer(const gguf::Header& header, const std::string& architecture, const std::filesystem::path& source)
      : header_(header), architecture_(architecture), source_(source) {}

  ParsedJson run(const TensorNames& names, std::span<const CheckpointTensor> stored) {
    for (const GgufKey& key : gguf_key_table()) {
      if (key.reading == GgufKey::Reading::whole) read_whole(key);
    }
    rename_latent_widths();
    separate_mtp_layers();
    if (const auto gating = number("expert_gating_func"))
      values_["topk_method"] = gating == kGgufSigmoidGating ? "noaux_tc" : "greedy";
    find_vocabulary(stored);
    if (!names.empty()) note_what_tensors_tell(names);
    read_values();
    return std::move(values_);
  }

 private:
  std::string full(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }
  std::optional<std::uint64_t> number(std::string_view key) const { return header_.number(full(key)); }

  void read_whole(const GgufKey& key) {
    const gguf::KeyValue* found = header_.find(full(key.key));
    if (found == nullptr) return;
    if (const auto* array = std::get_if<gguf::Array>(&found->value))
      values_[key.config] = of_layers(*array, key.key);
    else if (const auto whole = number(key.key))
      values_[key.config] = *whole;
    else
      throw Error::input(fmt::format("{} is not a whole number", full(key.key))).in(source_);
  }

  // A value per layer (head_count of hybrid models): the common one. Where they differ, all of them: names and shapes
  // may tell a model whose architecture nobody has described; of families, those with such lists are told otherwise.
  ParsedJson of_layers(const gguf::Array& array, std::string_view key) const {
    const std::vector<std::int64_t> values = array.integers();
    if (values.empty()) throw Error::input(fmt::format("{} is an empty list", full(key))).in(source_);
    if (is_common(values)) return static_cast<std::uint64_t>(values.front());
    if (!is_told_by_keys(architecture_)) {
      ParsedJson all = ParsedJson::array();
      for (const std::int64_t value : values)
        all.push_back(value < 0 ? ParsedJson() : ParsedJson(static_cast<std::uint64_t>(value)));
      return all;
    }
    throw Error::input(
        fmt::format("{} differs from layer to layer, which no family here describes", full(key)))
        .in(source_);
  }

  // Numbers, flags and texts; null for a key that is not there or holds a list.
  ParsedJson value_of(std::string_view key) const {
    const gguf::KeyValue* found = header_.find(full(key));
    if (found == nullptr) return nullptr;
    return std::visit(
        [](const auto& value) -> ParsedJson {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, gguf::Array>)
            return nullptr;
          else
            return value;
        },
        found->value);
  }

  // Latent attention: since 2025 the converter writes key_length as the latent's width and adds *_mla; before,
  // the expanded widths stood in key_length itself.
  void rename_latent_widths() {
    if (!values_.contains("kv_lora_rank")) return;
    const auto either = [&](std::string_view newer, std::string_view older) {
      return number(newer) ? number(newer) : number(older);
    };
    const auto qk = either("attention.key_length_mla", "attention.key_length");
    const auto v = either("attention.value_length_mla", "attention.value_length");
    const auto rope = number("rope.dimension_count");
    if (qk && rope && *rope < *qk) {
      values_["qk_nope_head_dim"] = *qk - *rope;
      values_["qk_rope_head_dim"] = *rope;
    }
    if (v) values_["v_head_dim"] = *v;
    // llama.cpp asks for the key of models that have no such rank, and takes 0 for none.
    if (!values_.contains("q_lora_rank") || values_["q_lora_rank"] == 0) values_["q_lora_rank"] = nullptr;
    values_["num_key_value_heads"] = values_["num_attention_heads"];
    values_.erase("head_dim");
  }

  // The block count includes the layers for multi-token prediction, which are counted apart here.
  void separate_mtp_layers() {
    const auto count = [&](const char* key) {
      const auto found = values_.find(key);
      return found != values_.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
    };
    const std::uint64_t extra = count("num_nextn_predict_layers"), blocks = count("num_hidden_layers");
    const bool apart = extra < blocks;
    if (apart && extra > 0) values_["num_hidden_layers"] = blocks - extra;
    values_["num_nextn_predict_layers"] = apart ? extra : 0;
  }

  // The tokenizer's where no key says it; without a tokenizer, the embedding's rows.
  void find_vocabulary(std::span<const CheckpointTensor> stored) {
    const gguf::KeyValue* tokens = header_.find("tokenizer.ggml.tokens");
    if (!values_.contains("vocab_size") && tokens != nullptr) {
      if (const auto* list = std::get_if<gguf::Array>(&tokens->value)) values_["vocab_size"] = list->count;
    }
    for (const CheckpointTensor& tensor : stored) {
      if (!values_.contains("vocab_size") && tensor.name == "token_embd.weight" && tensor.shape.size() == 2)
        values_["vocab_size"] = tensor.shape[0];
    }
  }

  // What no key says: an untied model carries its head; a bias or norm is there or it is not.
  void note_what_tensors_tell(const TensorNames& names) {
    values_["tie_word_embeddings"] = !names.contains("output.weight");
    values_["attention_bias"] = names.contains("blk.0.attn_q.bias") || names.contains("blk.0.attn_qkv.bias");
    values_["mlp_bias"] = names.contains("blk.0.ffn_gate.bias") && names.contains("blk.0.ffn_up.bias") &&
                          names.contains("blk.0.ffn_down.bias");
    values_["lm_head_bias"] = names.contains("output.bias");
    values_["use_qk_norm"] = names.contains("blk.0.attn_q_norm.weight");
    // Files older than expert_gating_func show by this bias that experts are chosen as in DeepSeek-V3.
    if (!values_.contains("topk_method")) {
      const bool corrected = std::any_of(names.begin(), names.end(), [](std::string_view name) {
        return name.ends_with(".exp_probs_b.bias");
      });
      if (corrected) values_["topk_method"] = "noaux_tc";
    }
    values_["new_decoder_architecture"] = names.contains("blk.0.attn_norm_2.weight");
  }

  void read_values() {
    constexpr std::string_view kScaling = "rope_scaling.";
    ParsedJson scaling = ParsedJson::object();
    const auto add = [](ParsedJson& object, std::string_view key, ParsedJson value) {
      if (!value.is_null()) object[key] = std::move(value);
    };
    for (const GgufKey& key : gguf_key_table()) {
      if (key.reading != GgufKey::Reading::value) continue;
      if (key.config.starts_with(kScaling))
        add(scaling, key.config.substr(kScaling.size()), value_of(key.key));
      else
        add(values_, key.config, value_of(key.key));
    }
    // One number stands for two that are equal.
    const GgufKey& multiplier = *find_gguf_key("rope.scaling.yarn_log_multiplier");
    if (const ParsedJson value = value_of(multiplier.key); value.is_number())
      scaling["mscale"] = scaling["mscale_all_dim"] = value.get<double>() / multiplier.factor;
    // Of longrope a file holds the factors, as tensors, and how cos and sin are scaled; no type. A factor alone
    // is linear scaling, as files of 2023 have it.
    if (!scaling.contains("rope_type")) {
      add(scaling, "attention_factor", value_of("rope.scaling.attn_factor"));
      if (scaling.contains("factor")) scaling["rope_type"] = "linear";
    }
    if (!scaling.empty()) values_["rope_scaling"] = std::move(scaling);
    // llama.cpp routes by groups where there are several, whatever scores them.
    const bool grouped = values_.contains("n_group") && values_["n_group"].is_number_unsigned() &&
                         values_["n_group"].get<std::uint64_t>() > 1;
    if (grouped && values_.value("topk_method", "") == "greedy")
      values_["topk_method"] = "group_limited_greedy";
    add_partial_rotation(value_of("rope.dimension_count"));
  }

  // The rotary part of a head, where it is not all of it; latent attention tells it by its widths.
  void add_partial_rotation(const ParsedJson& rotary) {
    if (!rotary.is_number_unsigned() || values_.contains("kv_lora_rank")) return;
    const auto real = [&](std::string_view key) {
      const auto found = values_.find(key);
      return found != values_.end() && found->is_number() ? found->get<double>() : 0.0;
    };
    const double heads = real("num_attention_heads");
    const double head_dim = values_.contains("head_dim") ? real("head_dim")
                            : heads > 0                  ? real("hidden_size") / heads
                                                         : 0;
    if (head_dim > rotary.get<double>()) values_["partial_rotary_factor"] = rotary.get<double>() / head_dim;
  }

  const gguf::Header& header_;
  const std::string& architecture_;
  const std::filesystem::path& source_;
  ParsedJson values_ = ParsedJson::object();
};

}  // namespace

ModelConfig ModelConfig::from_gguf(const gguf::Header& header, const std::filesystem::path& source,
                                   std::span<const CheckpointTensor> stored) {
  const auto architecture = header.text("general.architecture");
  if (!architecture) throw Error::input("GGUF metadata lacks general.architecture").in(source);
  ModelConfig config;
  config.origin_ = Origin::gguf;
  config.source_ = source;
  // A LoRA bears the architecture of the model that it is for, and has nothing of its own.
  if (header.text("general.type") == "adapter") {
    config.architecture_ = config.model_type_ = *architecture + " adapter";
    config.document_ = config.text_ = std::make_shared<const ParsedJson>(ParsedJson::object());
    return config;
  }
  const GgufSaid said(header, source, stored);
  if (const GgufFamily* family = family_of_gguf(said);
      family != nullptr && is_mirrored(*family) && !is_told_by_keys(*family)) {
    std::vector<std::string> notes;
    return from_json(mirrored_config(said, *family, notes), source);
  }
  config.architecture_ = config.model_type_ = *architecture;
  ParsedJson values = Renamer(header, *architecture, source).run(names_of(header, stored), stored);
  config.document_ = config.text_ = std::make_shared<const ParsedJson>(std::move(values));
  return config;
}

}  // namespace assay
