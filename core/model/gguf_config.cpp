// GGUF metadata as a config: `<architecture>.embedding_length` and its kin under the names config.json uses.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/formats/gguf.h"
#include "core/formats/json.h"
#include "core/model/config.h"
#include "core/model/gguf_settings.h"
#include "core/system/error.h"

namespace assay {
namespace {

struct Renamed {
  std::string_view gguf, config;
};
// Sources: gguf-py/gguf/constants.py (Keys) and the set_gguf_parameters() of convert_hf_to_gguf.py.
constexpr Renamed kSizes[] = {
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.sliding_window", "sliding_window"},
    {"attention.q_lora_rank", "q_lora_rank"},
    {"attention.kv_lora_rank", "kv_lora_rank"},
    {"vocab_size", "vocab_size"},
    {"context_length", "max_position_embeddings"},
    {"expert_count", "num_local_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_shared_count", "n_shared_experts"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
    {"leading_dense_block_count", "first_k_dense_replace"},
    {"interleave_moe_layer_step", "interleave_moe_layer_step"},
    {"nextn_predict_layers", "num_nextn_predict_layers"},
    {"attention.indexer.head_count", "index_n_heads"},
    {"attention.indexer.key_length", "index_head_dim"},
    {"attention.indexer.top_k", "index_topk"},
};

const ParsedJson* metadata_number(const ParsedJson& numbers, std::string_view key) {
  const auto found = numbers.find(key);
  return found == numbers.end() ? nullptr : &*found;
}

using TensorNames = std::set<std::string_view>;

TensorNames names_of(const gguf::Header& header, std::span<const CheckpointTensor> stored) {
  TensorNames names;
  for (const gguf::Tensor& tensor : header.tensors) names.insert(tensor.name);
  for (const CheckpointTensor& tensor : stored) names.insert(tensor.name);
  return names;
}

// A value per layer (head_count of hybrid models): the common one, or an Error where they differ.
std::uint64_t common_value(const gguf::Array& array, std::string_view key,
                           const std::filesystem::path& source) {
  const std::vector<std::int64_t> values = array.integers();
  for (const std::int64_t value : values) {
    if (value < 0 || value != values.front()) {
      throw Error::input(fmt::format("{} differs from layer to layer, which no family here describes", key))
          .in(source);
    }
  }
  if (values.empty()) throw Error::input(fmt::format("{} is an empty list", key)).in(source);
  return static_cast<std::uint64_t>(values.front());
}

ParsedJson renamed_sizes(const gguf::Header& header, const std::string& architecture,
                         const std::filesystem::path& source) {
  ParsedJson config = ParsedJson::object();
  for (const Renamed& entry : kSizes) {
    const std::string key = fmt::format("{}.{}", architecture, entry.gguf);
    const gguf::KeyValue* found = header.find(key);
    if (found == nullptr) continue;
    if (const auto* array = std::get_if<gguf::Array>(&found->value)) {
      config[entry.config] = common_value(*array, key, source);
    } else if (const auto number = header.number(key)) {
      config[entry.config] = *number;
    } else {
      throw Error::input(fmt::format("{} is not a whole number", key)).in(source);
    }
  }
  return config;
}

// Latent attention: since 2025 the converter writes key_length as the latent's width and adds *_mla; before,
// the expanded widths stood in key_length itself.
void rename_latent_widths(ParsedJson& config, const gguf::Header& header, const std::string& architecture) {
  if (!config.contains("kv_lora_rank")) return;
  const auto number = [&](std::string_view key) {
    return header.number(fmt::format("{}.{}", architecture, key));
  };
  const auto qk = number("attention.key_length_mla") ? number("attention.key_length_mla")
                                                     : number("attention.key_length");
  const auto v = number("attention.value_length_mla") ? number("attention.value_length_mla")
                                                      : number("attention.value_length");
  const auto rope = number("rope.dimension_count");
  if (qk && rope && *rope < *qk) {
    config["qk_nope_head_dim"] = *qk - *rope;
    config["qk_rope_head_dim"] = *rope;
  }
  if (v) config["v_head_dim"] = *v;
  // llama.cpp asks for the key of models that have no such rank, and takes 0 for none.
  if (!config.contains("q_lora_rank") || config["q_lora_rank"] == 0) config["q_lora_rank"] = nullptr;
  config["num_key_value_heads"] = config["num_attention_heads"];
  config.erase("head_dim");
}

// The block count includes the layers for multi-token prediction, which are counted apart here.
std::uint64_t separate_mtp_layers(ParsedJson& values) {
  const ParsedJson* extra = metadata_number(values, "num_nextn_predict_layers");
  const ParsedJson* blocks = metadata_number(values, "num_hidden_layers");
  if (extra == nullptr || blocks == nullptr) return 0;
  const auto count = extra->get<std::uint64_t>(), all = blocks->get<std::uint64_t>();
  if (count >= all) return 0;
  values["num_hidden_layers"] = all - count;
  return count;
}

// Llama 4's config.json calls an expert's width intermediate_size, and the dense layers'
// intermediate_size_mlp.
void swap_expert_width(ParsedJson& values) {
  if (!values.contains("moe_intermediate_size") || !values.contains("intermediate_size")) return;
  values["intermediate_size_mlp"] = values["intermediate_size"];
  values["intermediate_size"] = values["moe_intermediate_size"];
}

// What no key says: an untied model carries its head; a bias or norm is there or it is not.
void note_what_tensors_tell(ParsedJson& values, const TensorNames& names) {
  values["tie_word_embeddings"] = !names.contains("output.weight");
  values["attention_bias"] = names.contains("blk.0.attn_q.bias") || names.contains("blk.0.attn_qkv.bias");
  values["mlp_bias"] = names.contains("blk.0.ffn_gate.bias") && names.contains("blk.0.ffn_up.bias") &&
                       names.contains("blk.0.ffn_down.bias");
  values["use_qk_norm"] = names.contains("blk.0.attn_q_norm.weight");
  // Files older than expert_gating_func show by this bias that experts are chosen as in DeepSeek-V3.
  if (!values.contains("topk_method")) {
    const bool corrected = std::any_of(names.begin(), names.end(), [](std::string_view name) {
      return name.ends_with(".exp_probs_b.bias");
    });
    if (corrected) values["topk_method"] = "noaux_tc";
  }
  values["new_decoder_architecture"] = names.contains("blk.0.attn_norm_2.weight");
}

}  // namespace

ModelConfig ModelConfig::from_gguf(const gguf::Header& header, const std::filesystem::path& source,
                                   std::span<const CheckpointTensor> stored) {
  const auto architecture = header.text("general.architecture");
  if (!architecture) throw Error::input("GGUF metadata lacks general.architecture").in(source);
  ModelConfig config;
  config.origin_ = Origin::gguf;
  config.source_ = source;
  config.architecture_ = config.model_type_ = *architecture;
  ParsedJson values = renamed_sizes(header, *architecture, source);
  rename_latent_widths(values, header, *architecture);
  values["num_nextn_predict_layers"] = separate_mtp_layers(values);
  // llama.cpp reads Mixtral as a Llama with experts.
  if (*architecture == "llama" && values.contains("num_local_experts")) config.model_type_ = "mixtral";
  if (*architecture == "llama4") swap_expert_width(values);
  if (const auto gating = header.number(fmt::format("{}.expert_gating_func", *architecture))) {
    constexpr std::uint64_t kSigmoid = 2;  // llama.cpp, LLAMA_EXPERT_GATING_FUNC_TYPE_SIGMOID
    values["topk_method"] = gating == kSigmoid ? "noaux_tc" : "greedy";
  }
  // The vocabulary is the tokenizer's where no key says it, and untied models carry their head.
  const gguf::KeyValue* tokens = header.find("tokenizer.ggml.tokens");
  if (!values.contains("vocab_size") && tokens != nullptr) {
    if (const auto* list = std::get_if<gguf::Array>(&tokens->value)) values["vocab_size"] = list->count;
  }
  for (const CheckpointTensor& tensor : stored) {  // without a tokenizer, the embedding's rows
    if (!values.contains("vocab_size") && tensor.name == "token_embd.weight" && tensor.shape.size() == 2)
      values["vocab_size"] = tensor.shape[0];
  }
  const TensorNames names = names_of(header, stored);
  if (!names.empty()) note_what_tensors_tell(values, names);
  add_gguf_settings(values, header, *architecture);
  config.document_ = config.text_ = std::make_shared<const ParsedJson>(std::move(values));
  return config;
}

}  // namespace assay
