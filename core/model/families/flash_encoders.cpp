// XLM-RoBERTa as Jina's own code has it (embeddings-v3, reranker-v2, ColBERT v2) under names of flash attention's, without or with
// a table of places; embeddings-v3 holds an adapter for each task beside every matrix. And as transformers 5.24 has it, without.
// Sources: transformers (jina_embeddings_v3), vLLM 0.33's loaders; held to the 572,310,396 parameters of embeddings-v3.
#include "core/model/families/flash_encoders.h"

#include <nlohmann/json.hpp>

#include "core/model/families/all_encoders.h"
#include "core/model/families/encoder_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

EncoderKin flash_kin(bool places) {
  EncoderKin kin{.prefix = "roberta.",
                 .positions = places ? 512u : 0u,
                 .types = 1,
                 .norm_of_tables = "emb_ln",
                 .layer = "encoder.layers.{layer}",
                 .attention_norm = "norm1",
                 .mlp_norm = "norm2",
                 .up = "mlp.fc1",
                 .down = "mlp.fc2"};
  kin.attend.path = "mixer", kin.attend.fused = "Wqkv", kin.attend.o = "out_proj";
  kin.heads.classes = EncoderHeads::Classes::within;
  kin.heads.guessing = {"lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias"};
  return kin;
}

// Every matrix and table is stored with two stacks of narrow matrices beside it, one of each for a task.
void add_task_adapters(Module& module, const Quantity& tasks, const Quantity& rank) {
  std::vector<TensorSpec> adapters;
  for (TensorSpec& spec : module.tensors) {
    const bool matrix = spec.name == "weight" || spec.name.ends_with(".weight");
    if (!matrix || spec.shape.size() != 2) continue;
    const bool table = spec.part == Part::embedding;
    const Quantity out(spec.shape[0]), in(spec.shape[1]);
    spec.name.insert(spec.name.size() - std::string_view("weight").size(), "parametrizations.");
    const std::string stem = spec.name;
    spec.name = stem + ".original";
    const auto add = [&](const char* name, const std::vector<Quantity>& shape) {
      TensorSpec adapter = parameter(stem + name, shape, Role::other, spec.part);
      adapters.push_back(std::move(adapter));
    };
    add(".0.lora_A", table ? std::vector{tasks, out, rank} : std::vector{tasks, rank, in});
    add(".0.lora_B", table ? std::vector{tasks, rank, in} : std::vector{tasks, out, rank});
  }
  module.tensors.insert(module.tensors.end(), adapters.begin(), adapters.end());
  for (Module& child : module.children) add_task_adapters(child, tasks, rank);
}

void describe_jina_v3(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin = flash_kin(false);
  kin.sizes = {
      .vocabulary = 250002, .hidden = 1024, .intermediate = 4096, .layers = 24, .heads = 16, .tied = true};
  describe_encoder(config, tree, kin);
}

constexpr std::string_view kJinaArchitectures[] = {"JinaEmbeddingsV3Model", "JinaEmbeddingsV3ForMaskedLM",
                                                   "JinaEmbeddingsV3ForSequenceClassification",
                                                   "JinaEmbeddingsV3ForTokenClassification",
                                                   "JinaEmbeddingsV3ForQuestionAnswering"},
                           kJinaTypes[] = {"jina_embeddings_v3"};

}  // namespace

bool is_flash_encoder(const ModelConfig& config) {
  const auto angles = config.text().find("position_embedding_type");
  return config.text().contains("use_flash_attn") || (angles != config.text().end() && *angles == "rotary");
}

void describe_flash_encoder(ConfigReader& config, ModuleTree& tree) {
  const std::string places = config.text("position_embedding_type", "absolute");
  config.require(places == "absolute" || places == "rotary",
                 "position_embedding_type is neither absolute nor rotary");
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "type_vocab_size"})
    config.size(key);
  const auto tasks = config.texts("lora_adaptations");
  const bool adapted = tasks && !tasks->empty();
  EncoderKin kin = flash_kin(places == "absolute");
  describe_encoder(config, tree, kin);
  if (!adapted) return;
  config.require(encoder_use(config) == EncoderUse::alone,
                 "lora_adaptations beside a head: it is not described");
  // Its class keeps the encoder below a name of its own.
  tree.aliases.clear();
  for (Module& module : tree.modules) {
    if (module.path.empty()) {
      for (TensorSpec& spec : module.tensors) spec.name = kin.prefix + spec.name;
    } else {
      module.path = kin.prefix + module.path;
    }
    add_task_adapters(module, Quantity("lora_adaptations", tasks->size()), config.size("lora_rank", 4));
  }
}

const Family kJinaV3 = {"jina_embeddings_v3", "Jina embeddings v3", kJinaArchitectures, kJinaTypes, {},
                        describe_jina_v3};

}  // namespace assay::families
