// config.json out of GGUF metadata: gguf_hyperparameters backwards.
#include <fmt/format.h>

#include <algorithm>

#include "core/model/config.h"
#include "core/model/gguf_import.h"
#include "core/model/gguf_keys.h"
#include "core/model/gguf_mirror.h"
#include "core/model/llama3_rope.h"
#include "core/system/error.h"

namespace assay {
namespace {

ParsedJson shortest(const ParsedJson& value) {
  if (value.is_number_float()) return shortest_decimal(value.get<double>());
  if (!value.is_object()) return value;
  ParsedJson object = ParsedJson::object();
  for (const auto& [key, member] : value.items()) object[key] = shortest(member);
  return object;
}

class ConfigWriter {
 public:
  ConfigWriter(const Checkpoint& gguf, const GgufFamily& family, const StoredTensors& stored)
      : gguf_(gguf), header_(*gguf.gguf), family_(family), stored_(stored) {}

  // `known`: what ModelConfig::from_gguf finds.
  ParsedJson write(const ParsedJson& known, ElementType type, HfModel& model) {
    config_["architectures"] = {std::string(family_.hf_class)};
    config_["model_type"] = std::string(family_.family);
    take_type(type);
    const auto keep = [&](std::string_view key) {
      if (const auto found = known.find(key); found != known.end())
        config_[std::string(key)] = shortest(*found);
    };
    for (const GgufKey& key : gguf_key_table()) {
      if (key.writing != GgufKey::Writing::none) keep(key.config.substr(0, key.config.find('.')));
    }
    // What the table writes in sums, and what the tensors tell.
    for (const char* key : {"qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "tie_word_embeddings"})
      keep(key);
    for (const LogicalTensor& tensor : stored_.tensors) {
      if (tensor.name == "token_embd.weight") config_["vocab_size"] = tensor.rows;
    }
    attention(known);
    experts(known);
    rope_frequencies(model.left_out);
    take_tokens();
    note_losses(model.notes);
    return std::move(config_);
  }

  // By the tables that would write it.
  ParsedJson mirror(ElementType type, HfModel& model) {
    const GgufSaid said(header_, gguf_.files.front().path, gguf_.tensors);
    config_ = mirrored_config(said, family_, model.notes);
    take_type(type);
    take_tokens();
    note_losses(model.notes);
    return std::move(config_);
  }

 private:
  void take_type(ElementType type) {
    config_["dtype"] = type == ElementType::F32   ? "float32"
                       : type == ElementType::F16 ? "float16"
                                                  : "bfloat16";
  }
  void take_tokens() {
    token("bos_token_id", "tokenizer.ggml.bos_token_id");
    token("eos_token_id", "tokenizer.ggml.eos_token_id");
    token("pad_token_id", "tokenizer.ggml.padding_token_id");
  }

  // Some files say -1 where there is none.
  void token(const char* name, std::string_view key) {
    const auto value = header_.number(key);
    if (value && *value < config_.value("vocab_size", std::uint64_t{0})) config_[name] = *value;
  }

  void attention(const ParsedJson& known) {
    for (const std::string_view key : family_.bias_keys) {
      if (known.value(key, false)) config_[std::string(key)] = true;
    }
    if (carries("sliding_window") && known.contains("sliding_window"))
      config_["sliding_window"] = known.at("sliding_window");
    if (family_.latent) config_["num_nextn_predict_layers"] = known.value("num_nextn_predict_layers", 0);
  }

  bool carries(std::string_view key) const {
    const auto holds = [&](std::span<const std::string_view> keys) {
      return std::find(keys.begin(), keys.end(), key) != keys.end();
    };
    return holds(family_.carried.used) || holds(family_.carried.idle);
  }

  void experts(const ParsedJson& known) {
    config_.erase("norm_topk_prob");
    if (!config_.contains("num_local_experts")) return;
    const ParsedJson count = config_["num_local_experts"];
    config_.erase("num_local_experts");
    config_[std::string(family_.experts_key)] = count;
    if (carries("norm_topk_prob"))  // unsaid, as llama.cpp computes it
      config_["norm_topk_prob"] = known.value("norm_topk_prob", family_.renormalizes_by_default);
    if (!family_.latent) return;
    const auto gating = header_.number(fmt::format("{}.expert_gating_func", family_.architecture));
    if (gating == kGgufSigmoidGating) config_["scoring_func"] = "sigmoid";
    if (gating == kGgufSoftmaxGating) config_["scoring_func"] = "softmax";
    config_["topk_method"] = !family_.topk_method.empty()  ? std::string(family_.topk_method)
                             : config_.contains("n_group") ? "group_limited_greedy"
                                                           : "greedy";
  }

  void note_losses(std::vector<std::string>& notes) const {
    const auto scaling = config_.find("rope_scaling");
    if (scaling != config_.end() && scaling->contains("mscale"))
      notes.emplace_back(
          "rope scaling: mscale is taken to equal mscale_all_dim, of which alone the metadata speak");
  }

  // Of Llama 3's scaling a GGUF has the factors it leads to, and no key.
  void rope_frequencies(std::vector<std::string>& left_out) {
    const std::vector<float> factors = rope_factors(gguf_, stored_);
    if (std::all_of(factors.begin(), factors.end(), [](float factor) { return factor == 1; })) return;
    const auto theta = config_.find("rope_theta");
    const float base = theta != config_.end() && theta->is_number() ? theta->get<float>() : 10000.0F;
    const auto found = llama3_rope_of(factors, base);
    if (!found || !family_.writes_rope_factors || config_.contains("rope_scaling")) {
      left_out.emplace_back("rope_freqs.weight");
      return;
    }
    config_["rope_scaling"] = llama3_scaling(*found);
  }

  const Checkpoint& gguf_;
  const gguf::Header& header_;
  const GgufFamily& family_;
  const StoredTensors& stored_;
  ParsedJson config_ = ParsedJson::object();
};

}  // namespace

ParsedJson hf_config(const Checkpoint& gguf, const GgufFamily& family, const StoredTensors& stored,
                     ElementType type, HfModel& model) {
  if (is_mirrored(family)) return ConfigWriter(gguf, family, stored).mirror(type, model);
  const ModelConfig sizes = ModelConfig::from_gguf(*gguf.gguf, gguf.files.front().path, gguf.tensors);
  return ConfigWriter(gguf, family, stored).write(sizes.document(), type, model);
}

}  // namespace assay
