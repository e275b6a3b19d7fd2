// What of Cosmos 3 understands: Nano and Super are a Qwen3-VL, Edge is a decoder of plain MLPs behind a SigLIP 2, under the names
// that NVIDIA's release shares with diffusers ("to_q"). What draws films beside it, in the same layers, is told as not counted.
// Source: transformers 5.24 (cosmos3_omni, cosmos3_edge), which takes the rest away when it loads, as vLLM 0.33 does.
#include "core/model/families/all_more.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// Names of both language models.
LlamaKin flat_kin(const DecoderDefaults& sizes) {
  LlamaKin kin = {.sizes = sizes,
                  .layer_path = "layers.{layer}",
                  .frame = {.embedding = "embed_tokens", .final_norm = "norm", .head = "lm_head"}};
  HeadAttention& heads = kin.heads;
  heads.q = "to_q", heads.k = "to_k", heads.v = "to_v", heads.o = "to_out";
  heads.q_norm = "norm_q", heads.k_norm = "norm_k";
  return kin;
}

void note_drawing(ModuleTree& tree) {
  tree.not_counted.push_back(
      {"what draws films and sound (add_q_proj, …_moe_gen, proj_in and their like)", std::nullopt});
}

void describe_cosmos3(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = flat_kin({.vocabulary = 151936,
                           .hidden = 4096,
                           .intermediate = 22016,
                           .layers = 32,
                           .heads = 32,
                           .kv_heads = 32,
                           .head_dim = 128});
  kin.heads.qk_norm = QkNorm::per_head;
  describe_kin(config, tree, kin);
  constexpr std::uint64_t kDeepMergers = 3;
  add_qwen_vision(config, tree, "", kDeepMergers);
  note_drawing(tree);
}

void add_edge_vision(ConfigReader& config, ModuleTree& tree) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const ModelConfig outer = config.config().document_only();
  ConfigReader document(outer, tree.family);
  const Quantity hidden = vision->size("hidden_size", 1152), patch = vision->size("patch_size", 16);
  Module tower{"model.visual", "vision tower (SigLIP)", {}, {}, {}};
  Tower(tower, Part::vision)
      .matrix("embeddings.patch_embedding", vision->size("num_channels", 3) * patch * patch, hidden, true)
      .tensor("embeddings.position_embedding.weight", {vision->size("num_patches", 256), hidden})
      .norm("post_layernorm", hidden, true);
  EncoderBlock block{hidden, vision->size("intermediate_size", 4304)};
  block.norm1 = "layer_norm1", block.norm2 = "layer_norm2";
  block.q = "self_attn.to_q", block.k = "self_attn.to_k", block.v = "self_attn.to_v";
  block.up = "mlp.up_proj", block.down = "mlp.down_proj";
  tower.children = {encoder_blocks("encoder.layers.{layer}", read_layers(*vision, "num_hidden_layers", 27),
                                   block, Part::vision)};
  add_tower(tree, std::move(tower));
  const Quantity merge = vision->size("spatial_merge_size", 2);
  const Quantity between = document.size("projector_hidden_size", 11520);
  Module projector{"model.projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .norm("norm", hidden, true)
      .matrix("linear_fc1", merge * merge * hidden, between, true)
      .matrix("linear_fc2", between, text_width(tree), true);
  add_tower(tree, std::move(projector));
}

void describe_cosmos3_edge(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = flat_kin({.vocabulary = 131072,
                           .hidden = 2048,
                           .intermediate = 9216,
                           .layers = 28,
                           .heads = 16,
                           .kv_heads = 8,
                           .head_dim = 128});
  kin.mlp.gate = "";
  kin.mlp_bias_keys = "mlp_bias";
  Decoder d = read_decoder(config, tree, kin.sizes);
  d.tied = tree.tied_embeddings = false;  // whatever is said
  describe_kin(config, tree, kin, d);
  add_edge_vision(config, tree);
  note_drawing(tree);
}

constexpr std::string_view kCosmos3Architectures[] = {"Cosmos3OmniForConditionalGeneration",
                                                      "Cosmos3ForConditionalGeneration"},
                           kCosmos3Types[] = {"cosmos3_omni"},
                           kCosmos3EdgeArchitectures[] = {"Cosmos3EdgeForConditionalGeneration"},
                           kCosmos3EdgeTypes[] = {"cosmos3_edge"};

}  // namespace

const Family kCosmos3 = {"cosmos3_omni", "Cosmos 3", kCosmos3Architectures,
                         kCosmos3Types,  {},         describe_cosmos3};
const Family kCosmos3Edge = {
    "cosmos3_edge", "Cosmos 3 Edge", kCosmos3EdgeArchitectures, kCosmos3EdgeTypes, {}, describe_cosmos3_edge};

}  // namespace assay::families
