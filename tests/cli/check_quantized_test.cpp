// `assay check` of quantized models with one broken value: the scale of a whole NVFP4 matrix, the groups of GPTQ's
// columns. Codes and block scales are made up; what is sound passes, warnings and all.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;
using Shape = std::vector<std::uint64_t>;

constexpr std::uint64_t kHidden = 64, kMlp = 96;

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

class QuantizedModel {
 public:
  enum class Form { modelopt, compressed, gptq };

  explicit QuantizedModel(Form form) : form_(form) {
    add("model.embed_tokens.weight", "BF16", {96, kHidden}, bf16(96 * kHidden));
    add("lm_head.weight", "BF16", {96, kHidden}, bf16(96 * kHidden));
    add("model.norm.weight", "BF16", {kHidden}, ones());
    for (int i = 0; i < 2; ++i) {
      const std::string layer = "model.layers." + std::to_string(i) + ".";
      add(layer + "input_layernorm.weight", "BF16", {kHidden}, ones());
      add(layer + "post_attention_layernorm.weight", "BF16", {kHidden}, ones());
      for (const char* part : {"q", "k", "v", "o"})
        matrix(layer + "self_attn." + part + "_proj", kHidden, kHidden);
      matrix(layer + "mlp.gate_proj", kMlp, kHidden);
      matrix(layer + "mlp.up_proj", kMlp, kHidden);
      matrix(layer + "mlp.down_proj", kHidden, kMlp);
    }
  }

  std::string& bytes(const std::string& name) { return tensors_.at(name).bytes; }
  void retype(const std::string& name, const std::string& type) { tensors_.at(name).type = type; }

  ProcessResult check() const {
    const TempDir dir;
    json header = json::object();
    std::string buffer;
    for (const auto& [name, tensor] : tensors_) {
      header[name] = {{"dtype", tensor.type},
                      {"shape", tensor.shape},
                      {"data_offsets", {buffer.size(), buffer.size() + tensor.bytes.size()}}};
      buffer += tensor.bytes;
    }
    write_file(dir / "model.safetensors", safetensors_bytes(header.dump(), buffer));
    write_file(dir / "config.json", config().dump());
    return assay({"check", dir.path().string()});
  }

 private:
  struct Tensor {
    std::string type;
    Shape shape;
    std::string bytes;
  };
  void add(const std::string& name, const std::string& type, const Shape& shape, std::string bytes) {
    tensors_[name] = {type, shape, std::move(bytes)};
  }
  std::string random_bytes(std::uint64_t count) {
    std::string made(count, '\0');
    for (char& c : made) c = static_cast<char>(random_() & 0xFF);
    return made;
  }
  // Between 0.03 and 0.06 in size, of both signs.
  std::string bf16(std::uint64_t count) {
    std::vector<std::uint16_t> values(count);
    for (auto& v : values) v = static_cast<std::uint16_t>(0x3D00 | (random_() & 0x807F));
    return bytes_of(values);
  }
  static std::string ones() { return bytes_of(std::vector<std::uint16_t>(kHidden, 0x3F80)); }

  void matrix(const std::string& module, std::uint64_t rows, std::uint64_t columns) {
    if (form_ == Form::gptq) {
      std::vector<std::uint32_t> groups(columns);
      for (std::uint64_t i = 0; i < columns; ++i) groups[i] = static_cast<std::uint32_t>(i / 32);
      std::vector<std::uint16_t> scales(columns / 32 * rows);
      for (auto& s : scales) s = static_cast<std::uint16_t>(0x1C00 | (random_() & 0x3FF));  // about 0.005
      add(module + ".qweight", "I32", {columns / 8, rows}, random_bytes(columns / 8 * rows * 4));
      add(module + ".qzeros", "I32", {columns / 32, rows / 8},
          std::string(columns / 32 * rows / 8 * 4, '\x77'));
      add(module + ".scales", "F16", {columns / 32, rows}, bytes_of(scales));
      add(module + ".g_idx", "I32", {columns}, bytes_of(groups));
      return;
    }
    const bool packed = form_ == Form::compressed;
    std::string scales(rows * columns / 16, '\0');
    for (char& c : scales) c = static_cast<char>(0x38 | (random_() & 7));  // E4M3, 1 to 1.875
    add(module + (packed ? ".weight_packed" : ".weight"), "U8", {rows, columns / 2},
        random_bytes(rows * columns / 2));
    add(module + ".weight_scale", "F8_E4M3", {rows, columns / 16}, scales);
    add(module + (packed ? ".weight_global_scale" : ".weight_scale_2"), "F32", packed ? Shape{1} : Shape{},
        bytes_of(std::vector<float>{packed ? 100.0F : 0.01F}));
  }

  json config() const {
    json made = {{"architectures", {"LlamaForCausalLM"}},
                 {"model_type", "llama"},
                 {"vocab_size", 96},
                 {"hidden_size", kHidden},
                 {"intermediate_size", kMlp},
                 {"num_hidden_layers", 2},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 4},
                 {"tie_word_embeddings", false}};
    json& quantization = made["quantization_config"];
    if (form_ == Form::gptq)
      quantization = {
          {"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}, {"sym", true}, {"desc_act", true}};
    else if (form_ == Form::modelopt)
      quantization = {{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}, {"group_size", 16}};
    else
      quantization = {
          {"quant_method", "compressed-tensors"},
          {"format", "nvfp4-pack-quantized"},
          {"ignore", {"lm_head"}},
          {"config_groups",
           {{"group_0",
             {{"targets", {"Linear"}},
              {"weights",
               {{"type", "float"}, {"num_bits", 4}, {"strategy", "tensor_group"}, {"group_size", 16}}}}}}}};
    return made;
  }

  Form form_;
  std::mt19937 random_{7};
  std::map<std::string, Tensor> tensors_;
};

using Form = QuantizedModel::Form;

void expect_caught(const QuantizedModel& model, const std::string& text) {
  const ProcessResult result = model.check();
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  EXPECT_NE(result.out.find("FAILED    numbers"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(text), std::string::npos) << "nothing says " << text << "\n" << result.out;
}

// No warning either: GPTQ's symmetric zero points are all the same.
TEST(CheckQuantized, SoundModelsPassWithoutAWarning) {
  for (const Form form : {Form::modelopt, Form::compressed, Form::gptq}) {
    const ProcessResult result = QuantizedModel(form).check();
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_EQ(result.out.find("warning"), std::string::npos) << result.out;
    EXPECT_NE(result.out.find("PASSED    numbers"), std::string::npos) << result.out;
  }
}

TEST(CheckQuantized, AGlobalScaleThatIsNoneIsAnError) {
  struct Broken {
    Form form;
    const char* tensor;
    float value;
    const char* said;
  };
  const char *multiplied = "model.layers.1.mlp.down_proj.weight_scale_2",
             *divided = "model.layers.1.mlp.down_proj.weight_global_scale";
  for (const Broken& broken :
       {Broken{Form::modelopt, multiplied, 0, ": is zero, and makes zeros of a matrix whose codes are not"},
        Broken{Form::modelopt, multiplied, -0.01F, ": holds -0.01, the scale of a whole matrix"},
        Broken{Form::modelopt, multiplied, NAN, ": holds 1 NaN"},
        Broken{Form::compressed, divided, 0, ": is zero, and the matrix is divided by it"},
        Broken{Form::compressed, divided, -100, ": holds -100, the scale of a whole matrix"},
        Broken{Form::compressed, divided, INFINITY, ": holds 0 NaN and 1 Inf"}}) {
    QuantizedModel model(broken.form);
    model.bytes(broken.tensor) = bytes_of(std::vector<float>{broken.value});
    expect_caught(model, broken.tensor + std::string(broken.said));
  }
}

TEST(CheckQuantized, ANegativeBlockScaleIsAnError) {
  QuantizedModel model(Form::modelopt);
  model.bytes("model.layers.1.mlp.down_proj.weight_scale")[5] = '\xB8';
  expect_caught(model, "model.layers.1.mlp.down_proj.weight_scale: holds the scale -1");
}

// A matrix of zeros is scaled by anything.
TEST(CheckQuantized, AGlobalScaleOfZeroOverZerosIsNone) {
  QuantizedModel model(Form::modelopt);
  std::string& codes = model.bytes("model.layers.1.mlp.down_proj.weight");
  codes.assign(codes.size(), '\0');
  model.bytes("model.layers.1.mlp.down_proj.weight_scale_2").assign(4, '\0');
  const ProcessResult result = model.check();
  EXPECT_EQ(result.out.find("FAILED    numbers"), std::string::npos) << result.out;
}

TEST(CheckQuantized, ColumnsInGroupsThatAreNotThereAreAnError) {
  for (const std::int32_t group : {3, 99, -2}) {
    QuantizedModel model(Form::gptq);
    std::memcpy(model.bytes("model.layers.0.mlp.down_proj.g_idx").data() + 40, &group, 4);
    expect_caught(model, "model.layers.0.mlp.down_proj.g_idx: places columns in group " +
                             std::to_string(group) + " of a matrix whose groups are 0 to 2");
  }
}

// What cannot be decoded leaves the numbers unproven.
TEST(CheckQuantized, AMatrixThatIsNotUnderstoodLeavesNumbersUnproven) {
  QuantizedModel model(Form::gptq);
  model.retype("model.layers.0.mlp.down_proj.g_idx", "F32");
  const ProcessResult result = model.check();
  EXPECT_NE(result.out.find("UNPROVEN  numbers"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("1 matrix is in no form that is read here"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace assay::test
