#include "cli/gate/wide_twin.h"

#include <fmt/format.h>

#include <vector>

#include "core/formats/safetensors.h"
#include "core/numeric/codec.h"
#include "core/system/output_paths.h"
#include "kernels/harness/inputs.h"

namespace assay {
namespace {

constexpr std::uint64_t kHidden = 256, kWidth = 512, kVocabulary = 448, kKeyWidth = 128, kLayers = 2;

constexpr const char* kConfig = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
 "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 448, "max_position_embeddings": 128,
 "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "hidden_act": "silu", "attention_bias": false,
 "mlp_bias": false, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
 "bos_token_id": 0, "eos_token_id": 1})";

std::vector<safetensors::Tensor> tensors_of_twin() {
  std::vector<safetensors::Tensor> tensors;
  const auto add = [&](std::string name, std::vector<std::uint64_t> shape) {
    tensors.push_back({std::move(name), ElementType::BF16, std::move(shape)});
  };
  add("model.embed_tokens.weight", {kVocabulary, kHidden});
  add("model.norm.weight", {kHidden});
  add("lm_head.weight", {kVocabulary, kHidden});
  for (std::uint64_t layer = 0; layer < kLayers; ++layer) {
    const std::string at = fmt::format("model.layers.{}.", layer);
    add(at + "input_layernorm.weight", {kHidden});
    add(at + "post_attention_layernorm.weight", {kHidden});
    add(at + "self_attn.q_proj.weight", {kHidden, kHidden});
    add(at + "self_attn.k_proj.weight", {kKeyWidth, kHidden});
    add(at + "self_attn.v_proj.weight", {kKeyWidth, kHidden});
    add(at + "self_attn.o_proj.weight", {kHidden, kHidden});
    add(at + "mlp.gate_proj.weight", {kWidth, kHidden});
    add(at + "mlp.up_proj.weight", {kWidth, kHidden});
    add(at + "mlp.down_proj.weight", {kHidden, kWidth});
  }
  return tensors;
}

// Matrices with outlier columns, as trained ones have; norms around 1.
std::vector<std::byte> numbers_of(const safetensors::Tensor& tensor, std::uint64_t seed) {
  const bool vector = tensor.shape.size() == 1;
  const std::uint64_t rows = vector ? 1 : tensor.shape[0], columns = tensor.shape.back();
  std::vector<float> values(rows * columns);
  fill_inputs(vector ? InputKind::positive_mean : InputKind::heavy_tailed,
              {.rows = rows, .columns = columns, .seed = seed, .halvings = vector ? 0 : 5}, values);
  std::vector<std::byte> bytes(2 * values.size());
  encode(ElementType::BF16, values, Overflow::special, bytes.data());
  return bytes;
}

}  // namespace

void write_wide_twin(const std::filesystem::path& folder, const std::filesystem::path& tokenizer_from) {
  std::filesystem::create_directories(folder);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy_file(tokenizer_from / name, folder / name);
  write_whole(folder / "config.json", kConfig);
  std::vector<safetensors::Tensor> tensors = tensors_of_twin();
  std::string content = safetensors::serialize_header(tensors, {});
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::vector<std::byte> bytes = numbers_of(tensors[i], i + 1);
    content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  write_whole(folder / "model.safetensors", content);
}

}  // namespace assay
