// A config against a checkpoint's headers: the published totals of DeepSeek-V3, and every way in which a
// checkpoint can fail to be what its config says.
#include "core/model/reconcile.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/formats/json.h"
#include "tests/support/checkpoints.h"
#include "tests/support/published_config.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::make_checkpoint;
using test::StoredTensor;

// hidden 256, 2 layers, 4 heads of 64, 2 key and value heads, MLP 512, vocabulary 128.
constexpr const char* kSmallLlama = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "vocab_size": 128, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": false)";

ModelConfig small_llama(const std::string& more = "") {
  return ModelConfig::from_json(parse_json(kSmallLlama + more + "}", "config.json"), "config.json");
}

constexpr const char* kFp8 =
    R"(, "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]})";

// By hand: what transformers saves for this config.
std::vector<StoredTensor> small_tensors() {
  const ElementType t = ElementType::BF16;
  std::vector<StoredTensor> tensors = {{"model.embed_tokens.weight", t, {128, 256}},
                                       {"model.norm.weight", t, {256}},
                                       {"lm_head.weight", t, {128, 256}}};
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    tensors.push_back({layer + "input_layernorm.weight", t, {256}});
    tensors.push_back({layer + "post_attention_layernorm.weight", t, {256}});
    tensors.push_back({layer + "self_attn.q_proj.weight", t, {256, 256}});
    tensors.push_back({layer + "self_attn.k_proj.weight", t, {128, 256}});
    tensors.push_back({layer + "self_attn.v_proj.weight", t, {128, 256}});
    tensors.push_back({layer + "self_attn.o_proj.weight", t, {256, 256}});
    tensors.push_back({layer + "mlp.gate_proj.weight", t, {512, 256}});
    tensors.push_back({layer + "mlp.up_proj.weight", t, {512, 256}});
    tensors.push_back({layer + "mlp.down_proj.weight", t, {256, 512}});
  }
  return tensors;
}

StoredTensor& named(std::vector<StoredTensor>& tensors, const std::string& name) {
  return *std::find_if(tensors.begin(), tensors.end(), [&](const StoredTensor& t) { return t.name == name; });
}

Reconciliation reconciled(const ModelConfig& config, const Checkpoint& checkpoint) {
  return reconcile(describe(config), config, checkpoint);
}

const Finding* with_code(const Reconciliation& r, std::string_view code) {
  const auto found =
      std::find_if(r.findings.begin(), r.findings.end(), [&](const Finding& f) { return f.code == code; });
  return found == r.findings.end() ? nullptr : &*found;
}

TEST(Reconcile, ExactCheckpointLeavesNothingOver) {
  const Reconciliation r = reconciled(small_llama(), make_checkpoint(small_tensors()));
  // 2 × 128 × 256 + 256 + 2 × (2 × 256 + 2 × 256 × 256 + 2 × 128 × 256 + 3 × 512 × 256)
  EXPECT_EQ(r.expected, 1'246'464u);
  EXPECT_EQ(r.stored.elements, 1'246'464u);
  EXPECT_EQ(r.difference, 0);
  EXPECT_TRUE(r.findings.empty());
}

TEST(Reconcile, MissingTensorIsNamed) {
  auto tensors = small_tensors();
  std::erase_if(tensors, [](const StoredTensor& t) { return t.name == "model.layers.1.mlp.up_proj.weight"; });
  const Reconciliation r = reconciled(small_llama(), make_checkpoint(tensors));
  EXPECT_EQ(r.difference, -131'072);
  ASSERT_NE(with_code(r, "model.tensor_missing"), nullptr);
  EXPECT_EQ(with_code(r, "model.tensor_missing")->tensor, "model.layers.1.mlp.up_proj.weight");
  EXPECT_EQ(r.missing_tensors, 1u);
}

TEST(Reconcile, ExtraTensorIsNamedAndSuspicious) {
  auto tensors = small_tensors();
  tensors.push_back({"model.layers.0.self_attn.q_proj.bias", ElementType::BF16, {256}});
  const Reconciliation r = reconciled(small_llama(), make_checkpoint(tensors));
  EXPECT_EQ(r.difference, 256);
  ASSERT_NE(with_code(r, "model.tensor_extra"), nullptr);
  EXPECT_EQ(with_code(r, "model.tensor_extra")->tensor, "model.layers.0.self_attn.q_proj.bias");
}

TEST(Reconcile, TransposedMatrixIsMisshapen) {
  auto tensors = small_tensors();
  named(tensors, "model.layers.0.mlp.down_proj.weight").shape = {512, 256};
  const Reconciliation r = reconciled(small_llama(), make_checkpoint(tensors));
  EXPECT_EQ(r.difference, 0);  // as many elements, and still wrong
  ASSERT_NE(with_code(r, "model.tensor_shape"), nullptr);
  EXPECT_TRUE(has_errors(r.findings));
}

TEST(Reconcile, WholeNumbersAreNoWeights) {
  auto tensors = small_tensors();
  named(tensors, "model.norm.weight").type = ElementType::I64;
  EXPECT_NE(with_code(reconciled(small_llama(), make_checkpoint(tensors)), "model.tensor_type"), nullptr);
}

TEST(Reconcile, TiedHeadStoredAgainIsADuplicate) {
  const ModelConfig tied = ModelConfig::from_json(
      parse_json(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128,
        "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "tie_word_embeddings": true})",
                 "config.json"),
      "config.json");
  const Reconciliation r = reconciled(tied, make_checkpoint(small_tensors()));
  EXPECT_EQ(r.duplicates.elements, 128u * 256u);
  EXPECT_EQ(r.difference, 0);
  EXPECT_FALSE(has_errors(r.findings));
}

TEST(Reconcile, RotaryFrequenciesAreBuffers) {
  auto tensors = small_tensors();
  for (const char* layer : {"0", "1"})
    tensors.push_back(
        {std::string("model.layers.") + layer + ".self_attn.rotary_emb.inv_freq", ElementType::F32, {32}});
  const Reconciliation r = reconciled(small_llama(), make_checkpoint(tensors));
  EXPECT_EQ(r.buffers.elements, 64u);
  EXPECT_EQ(r.difference, 0);
  EXPECT_TRUE(r.findings.empty());
}

std::vector<StoredTensor> fp8_tensors(std::uint64_t block) {
  std::vector<StoredTensor> tensors;
  for (StoredTensor tensor : small_tensors()) {
    const bool matrix = tensor.name.find("_proj") != std::string::npos;
    if (matrix) {
      tensor.type = ElementType::F8_E4M3;
      const auto ceil = [&](std::uint64_t n) { return (n + block - 1) / block; };
      tensors.push_back(
          {tensor.name + "_scale_inv", ElementType::F32, {ceil(tensor.shape[0]), ceil(tensor.shape[1])}});
    }
    tensors.push_back(tensor);
  }
  return tensors;
}

TEST(Reconcile, BlockScalesAreCountedApart) {
  const Reconciliation r = reconciled(small_llama(kFp8), make_checkpoint(fp8_tensors(128)));
  EXPECT_EQ(r.scales.elements, 2u * (4 + 2 + 2 + 4 + 3 * 8));
  EXPECT_EQ(r.difference, 0);
  EXPECT_TRUE(r.findings.empty());
}

TEST(Reconcile, GridOfAnotherBlockSizeIsExplained) {
  const Reconciliation r = reconciled(small_llama(kFp8), make_checkpoint(fp8_tensors(64)));
  const Finding* finding = with_code(r, "model.scale_shape");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->message.find("the grid of 64x64 blocks"), std::string::npos) << finding->message;
}

// Codes of one value each were taken for several in one, whatever the type.
TEST(Reconcile, TooFewCodesAreNoPackedOnes) {
  struct {
    ElementType type;
    std::vector<std::uint64_t> shape;
    ElementType scale;
    std::vector<std::uint64_t> grid;
  } const halves[] = {
      {ElementType::F8_E4M3, {256, 128}, ElementType::F32, {1}},      // half of the inputs
      {ElementType::F8_E5M2, {192, 256}, ElementType::F32, {1}},      // three quarters of the outputs
      {ElementType::I8, {256, 128}, ElementType::F32, {256, 1}},      // no MXFP4: a scale each row
      {ElementType::I8, {256, 32}, ElementType::F32, {256, 1}},       // one bit each?
      {ElementType::U8, {256, 96}, ElementType::F8_E8M0, {256, 8}}};  // three bits each?
  for (const auto& half : halves) {
    auto tensors = small_tensors();
    named(tensors, "model.layers.0.self_attn.q_proj.weight") = {"model.layers.0.self_attn.q_proj.weight",
                                                                half.type, half.shape};
    tensors.push_back({"model.layers.0.self_attn.q_proj.weight_scale", half.scale, half.grid});
    const Reconciliation r = reconciled(small_llama(), make_checkpoint(tensors));
    const bool said =
        with_code(r, "model.tensor_shape") != nullptr || with_code(r, "model.scale_shape") != nullptr;
    EXPECT_TRUE(said) << name(half.type) << " " << half.shape[0] << "x" << half.shape[1];
  }
}

TEST(Reconcile, MissingScaleIsAnError) {
  auto tensors = fp8_tensors(128);
  std::erase_if(
      tensors, [](const StoredTensor& t) { return t.name == "model.layers.0.mlp.up_proj.weight_scale_inv"; });
  const Reconciliation r = reconciled(small_llama(kFp8), make_checkpoint(tensors));
  ASSERT_NE(with_code(r, "model.scale_missing"), nullptr);
  EXPECT_EQ(with_code(r, "model.scale_missing")->tensor, "model.layers.0.mlp.up_proj.weight");
}

// sgl-project/sglang#3491: BF16 weights whose config still says fp8.
TEST(Reconcile, StaleQuantizationConfig) {
  const Reconciliation r = reconciled(small_llama(kFp8), make_checkpoint(small_tensors()));
  ASSERT_NE(with_code(r, "model.quantization_stale"), nullptr);
  EXPECT_EQ(with_code(r, "model.quantization_stale")->remedy, "delete quantization_config from config.json");
}

TEST(Reconcile, UndeclaredQuantization) {
  Checkpoint checkpoint = make_checkpoint(fp8_tensors(128));
  checkpoint.config = "/nowhere/config.json";
  EXPECT_NE(with_code(reconciled(small_llama(), checkpoint), "model.quantization_undeclared"), nullptr);
  checkpoint.config.clear();  // of headers alone nobody could say it
  EXPECT_EQ(with_code(reconciled(small_llama(), checkpoint), "model.quantization_undeclared"), nullptr);
}

// compressed-tensors pack-quantized: eight 4-bit codes in an I32, a BF16 scale for each 128 columns.
TEST(Reconcile, PackedInt4IsUnpacked) {
  std::vector<StoredTensor> tensors;
  for (const StoredTensor& tensor : small_tensors()) {
    if (tensor.name.find("_proj") == std::string::npos) {
      tensors.push_back(tensor);
      continue;
    }
    const std::uint64_t rows = tensor.shape[0], columns = tensor.shape[1];
    tensors.push_back({tensor.name + "_packed", ElementType::I32, {rows, columns / 8}});
    tensors.push_back({tensor.name + "_scale", ElementType::BF16, {rows, columns / 128}});
    tensors.push_back({tensor.name + "_shape", ElementType::I64, {2}});
  }
  const ModelConfig config = small_llama(
      R"(, "quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups":
      {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}}}})");
  const Reconciliation r = reconciled(config, make_checkpoint(tensors));
  EXPECT_EQ(r.difference, 0);
  const std::uint64_t matrices = 2 * (2 * 256 * 256 + 2 * 128 * 256 + 3 * 512 * 256);
  EXPECT_EQ(r.unpacked, matrices - matrices / 8);
  EXPECT_TRUE(r.findings.empty());
}

TEST(Reconcile, ModelOptNvfp4PacksUnderThePlainName) {
  std::vector<StoredTensor> tensors;
  for (StoredTensor tensor : small_tensors()) {
    if (tensor.name.find("_proj") != std::string::npos) {
      tensors.push_back(
          {tensor.name + "_scale", ElementType::F8_E4M3, {tensor.shape[0], tensor.shape[1] / 16}});
      tensors.push_back({tensor.name + "_scale_2", ElementType::F32, {}});
      tensor.type = ElementType::U8;
      tensor.shape[1] /= 2;
    }
    tensors.push_back(tensor);
  }
  const Reconciliation r = reconciled(
      small_llama(R"(, "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"})"),
      make_checkpoint(tensors));
  EXPECT_EQ(r.difference, 0);
  EXPECT_TRUE(r.findings.empty());
}

TEST(Reconcile, AbsentShardsAreSaidAndNotMissing) {
  auto tensors = small_tensors();
  Checkpoint checkpoint = make_checkpoint(tensors);
  checkpoint.files[0].name = "model-00001-of-00002.safetensors";
  ShardIndex index;
  for (const StoredTensor& t : tensors) {
    const bool second = t.name.find("layers.1.") != std::string::npos;
    index.weight_map[t.name] =
        second ? "model-00002-of-00002.safetensors" : "model-00001-of-00002.safetensors";
  }
  checkpoint.index = index;
  std::erase_if(checkpoint.tensors,
                [](const CheckpointTensor& t) { return t.name.find("layers.1.") != std::string::npos; });
  const Reconciliation r = reconciled(small_llama(), checkpoint);
  EXPECT_EQ(r.shards_here, 1u);
  EXPECT_EQ(r.shards_told, 2u);
  EXPECT_EQ(r.tensors_not_here, 9u);
  EXPECT_EQ(r.difference, 0);
  EXPECT_NE(with_code(r, "model.shards_absent"), nullptr);
  EXPECT_FALSE(has_errors(r.findings));
}

TEST(Reconcile, GgufNamesAreUnderstood) {
  std::vector<StoredTensor> tensors = {{"token_embd.weight", ElementType::Q4_K, {128, 256}},
                                       {"output_norm.weight", ElementType::F32, {256}},
                                       {"output.weight", ElementType::Q6_K, {128, 256}},
                                       {"rope_freqs.weight", ElementType::F32, {32}}};
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    tensors.push_back({layer + "attn_norm.weight", ElementType::F32, {256}});
    tensors.push_back({layer + "ffn_norm.weight", ElementType::F32, {256}});
    tensors.push_back({layer + "attn_q.weight", ElementType::Q4_K, {256, 256}});
    tensors.push_back({layer + "attn_k.weight", ElementType::Q4_K, {128, 256}});
    tensors.push_back({layer + "attn_v.weight", ElementType::Q6_K, {128, 256}});
    tensors.push_back({layer + "attn_output.weight", ElementType::Q4_K, {256, 256}});
    tensors.push_back({layer + "ffn_gate.weight", ElementType::Q4_K, {512, 256}});
    tensors.push_back({layer + "ffn_up.weight", ElementType::Q4_K, {512, 256}});
    tensors.push_back({layer + "ffn_down.weight", ElementType::Q6_K, {256, 512}});
  }
  Checkpoint checkpoint = make_checkpoint(tensors);
  checkpoint.container = Checkpoint::Container::gguf;
  const Reconciliation r = reconciled(small_llama(), checkpoint);
  EXPECT_EQ(r.main.elements, 1'246'464u);
  EXPECT_EQ(r.buffers.elements, 32u);
  EXPECT_EQ(r.difference, 0);
  EXPECT_TRUE(r.findings.empty());

  checkpoint.tensors.pop_back();
  EXPECT_EQ(reconciled(small_llama(), checkpoint).missing, std::vector<std::string>{"blk.1.ffn_down.weight"});
}

// Published: 684,531,386,000 elements on the hub; 688,574,839,360 bytes of payload by a header audit.
class DeepSeekV3Checkpoint : public testing::Test {
 protected:
  void SetUp() override {
    ASSAY_CASE_OR_SKIP(list, "deepseek-v3-tensors.tsv.gz");
    config.emplace(ModelConfig::read(test::published_config("DeepSeek-V3")));
    tree = describe(*config);
    tensors = test::read_tensor_list(list);
  }
  std::optional<ModelConfig> config;
  ModuleTree tree;
  std::vector<StoredTensor> tensors;
};

TEST_F(DeepSeekV3Checkpoint, ReconcilesToTheLastElement) {
  ASSERT_EQ(tensors.size(), 91'991u);
  const Reconciliation r = reconcile(tree, *config, make_checkpoint(tensors));
  EXPECT_EQ(r.stored.elements, 684'531'386'000u);
  EXPECT_EQ(r.stored.bytes, 688'574'839'360u);
  EXPECT_EQ(r.main.elements, 671'026'419'200u);
  EXPECT_EQ(r.mtp.elements, 11'610'068'224u);
  EXPECT_EQ(r.duplicates.elements, 2u * 926'679'040u);
  EXPECT_EQ(r.scales.elements, 41'540'496u);
  EXPECT_EQ(r.difference, 0);
  EXPECT_TRUE(r.findings.empty()) << r.findings.front().code << " " << r.findings.front().message;
  EXPECT_EQ(r.types.at(ElementType::F8_E4M3).tensors, 45'808u);
  EXPECT_EQ(r.types.at(ElementType::BF16).elements, 3'918'786'560u);
}

TEST_F(DeepSeekV3Checkpoint, PromisesALayerThatIsAbsent) {
  std::erase_if(tensors, [](const StoredTensor& t) { return t.name.starts_with("model.layers.61."); });
  const Reconciliation r = reconcile(tree, *config, make_checkpoint(tensors));
  EXPECT_EQ(r.difference, 0);
  EXPECT_NE(with_code(r, "model.mtp_absent"), nullptr);
  EXPECT_EQ(with_code(r, "model.tensor_missing"), nullptr);
}

// Every name behind a prefix, or without one: one finding that says which, and all else as if it were not so.
TEST(Reconcile, PrefixesAreOneDiagnosis) {
  struct Case {
    const char *from, *to, *stored, *wanted;
  };
  const Case cases[] = {{"", "module.", "module.", ""},
                        {"", "_orig_mod.", "_orig_mod.", ""},
                        {"", "language_model.", "language_model.", ""},
                        {"", "base_model.model.", "base_model.model.", ""},
                        {"model.", "", "", "model."},
                        {"model.", "model.language_model.", "model.language_model.", "model."}};
  for (const Case& c : cases) {
    std::vector<StoredTensor> tensors = small_tensors();
    for (StoredTensor& tensor : tensors) {
      if (tensor.name.starts_with(c.from))
        tensor.name = c.to + tensor.name.substr(std::string(c.from).size());
    }
    const Reconciliation r = reconciled(small_llama(), make_checkpoint(tensors));
    ASSERT_EQ(r.findings.size(), 1u) << c.to;
    EXPECT_EQ(r.findings[0].code, "model.names_prefixed");
    const std::string& said = r.findings[0].message;
    for (const char* prefix : {c.stored, c.wanted}) {
      if (*prefix == 0) continue;
      EXPECT_NE(said.find("\"" + std::string(prefix) + "\""), std::string::npos) << said;
    }
    EXPECT_EQ(r.difference, 0) << c.to;
    EXPECT_EQ(r.missing_tensors, 0u);
  }
}

TEST(Reconcile, APrefixHidesNoOtherFault) {
  std::vector<StoredTensor> tensors = small_tensors();
  named(tensors, "model.layers.1.mlp.up_proj.weight").shape = {512, 255};
  tensors.erase(tensors.begin() + 1);  // the final norm
  for (StoredTensor& tensor : tensors) tensor.name = "module." + tensor.name;
  const Reconciliation r = reconciled(small_llama(), make_checkpoint(tensors));
  ASSERT_EQ(r.findings.size(), 3u);
  EXPECT_NE(with_code(r, "model.names_prefixed"), nullptr);
  ASSERT_NE(with_code(r, "model.tensor_shape"), nullptr);
  ASSERT_NE(with_code(r, "model.tensor_missing"), nullptr);
  EXPECT_EQ(with_code(r, "model.tensor_missing")->tensor, "model.norm.weight");
}

ModelConfig llama_of_layers(int count) {
  std::string text = kSmallLlama + std::string("}");
  const std::string two = "\"num_hidden_layers\": 2";
  text.replace(text.find(two), two.size(), "\"num_hidden_layers\": " + std::to_string(count));
  return ModelConfig::from_json(parse_json(text, "config.json"), "config.json");
}

TEST(Reconcile, WholeLayersAreOneFinding) {
  const Reconciliation fewer = reconciled(llama_of_layers(1), make_checkpoint(small_tensors()));
  ASSERT_EQ(fewer.findings.size(), 1u);
  EXPECT_EQ(fewer.findings[0].code, "model.layers_more");
  EXPECT_NE(fewer.findings[0].message.find("the config has 1 layers, and 9 tensors of layers 1 are here"),
            std::string::npos)
      << fewer.findings[0].message;
  const Reconciliation more = reconciled(llama_of_layers(5), make_checkpoint(small_tensors()));
  ASSERT_EQ(more.findings.size(), 1u);
  EXPECT_EQ(more.findings[0].code, "model.layers_missing");
  EXPECT_NE(more.findings[0].message.find("layers 2 to 4: 27 tensors"), std::string::npos)
      << more.findings[0].message;
  EXPECT_EQ(more.missing_tensors, 27u);
}

// One tensor of a layer is here: what lacks is named.
TEST(Reconcile, ALayerThatIsThereInPartIsNot) {
  std::vector<StoredTensor> tensors = small_tensors();
  tensors.push_back({"model.layers.2.mlp.up_proj.weight", ElementType::BF16, {512, 256}});
  const Reconciliation r = reconciled(llama_of_layers(3), make_checkpoint(tensors));
  EXPECT_EQ(r.findings.size(), 8u);
  EXPECT_EQ(with_code(r, "model.layers_missing"), nullptr);
}

// DeepSeek's names for what predicts, behind the layers that a config counts.
TEST(Reconcile, LayersForPredictionThatNobodyPromisedAreOneFinding) {
  std::vector<StoredTensor> tensors = small_tensors();
  tensors.push_back({"model.layers.2.eh_proj.weight", ElementType::BF16, {256, 512}});
  tensors.push_back({"model.layers.2.embed_tokens.weight", ElementType::BF16, {1000, 256}});
  tensors.push_back({"model.layers.2.mlp.up_proj.weight", ElementType::BF16, {512, 256}});
  const Reconciliation r = reconciled(small_llama(), make_checkpoint(tensors));
  ASSERT_EQ(r.findings.size(), 1u);
  EXPECT_EQ(r.findings[0].code, "model.mtp_undeclared");
  EXPECT_TRUE(r.findings[0].message.starts_with("3 tensors of layers 2 are here")) << r.findings[0].message;
  EXPECT_EQ(r.findings[0].remedy, "set num_nextn_predict_layers to 1");
}

// A tensor that other layers have is no layer too many.
TEST(Reconcile, AStrayTensorOfALayerThereIsIsExtra) {
  std::vector<StoredTensor> tensors = small_tensors();
  tensors.push_back({"model.layers.0.self_attn.q_norm.weight", ElementType::BF16, {64}});
  std::erase_if(tensors,
                [](const StoredTensor& t) { return t.name == "model.layers.1.input_layernorm.weight"; });
  tensors.push_back({"model.layers.01.input_layernorm.weight", ElementType::BF16, {256}});
  const Reconciliation r = reconciled(small_llama(), make_checkpoint(tensors));
  EXPECT_EQ(with_code(r, "model.layers_more"), nullptr);
  EXPECT_NE(with_code(r, "model.tensor_extra"), nullptr);
  EXPECT_EQ(r.findings.size(), 3u);
}

}  // namespace
}  // namespace assay
