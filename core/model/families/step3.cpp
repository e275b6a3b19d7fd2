// Step 3 (StepFun, 321B): queries of low rank shared by many heads, one key head, experts stacked in three tensors beside a
// shared one; behind a ViT and two strided convolutions. Names: the published weights, as vLLM 0.33 reads them.
#include "core/model/families/step3.h"

#include <algorithm>

#include "core/model/families/all_2026.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"
#include "core/system/text.h"

namespace assay::families {
namespace {

using namespace blocks;

// moe_layers_enum: "4,5,…", or a list; without it all but the first.
std::function<bool(std::uint64_t)> step3_sparse(ConfigReader& config) {
  if (!config.has("moe_layers_enum")) return [](std::uint64_t i) { return i > 0; };
  std::vector<std::uint64_t> named;
  if (config.is_list("moe_layers_enum")) {
    named = *config.numbers("moe_layers_enum");
  } else {
    named = step_layers_listed(config);
  }
  return [named](std::uint64_t i) { return std::find(named.begin(), named.end(), i) != named.end(); };
}

// q = wq(norm(q_proj(x))), as narrow in between as share_q_dim says.
Module step3_attention(ConfigReader& config, const HeadAttention& a) {
  const auto told = config.optional_size("share_q_dim", 2048);
  const Quantity rank = told ? *told : a.head_dim;
  HeadAttention keys = a;
  Module module = attention(keys);
  std::erase_if(module.tensors, [](const TensorSpec& spec) { return spec.name.starts_with("q_proj"); });
  add_linear(module,
             {.name = "q_proj", .in = a.hidden, .out = rank, .role = Role::q_a, .part = Part::attention});
  add_norm(module, "inter_norm", rank, Role::q_a_norm, false, Part::attention);
  add_linear(module, {.name = "wq",
                      .in = rank,
                      .out = a.heads * a.head_dim,
                      .role = Role::q_b,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .units = a.heads.value()});
  return module;
}

void describe_step3(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_decoder(config, tree,
                           {.vocabulary = 128815,
                            .hidden = 7168,
                            .intermediate = 18432,
                            .layers = 61,
                            .heads = 64,
                            .head_dim = 256});
  d.kv_heads = config.size("num_attention_groups|num_key_value_heads", 1);
  config.require_divides(d.kv_heads, d.heads);
  const HeadAttention a = d.attention();
  const Module attend = step3_attention(config, a);
  StackedExperts stacks{d.hidden, config.size("moe_intermediate_size", 5120),
                        read_experts(config, tree, "moe_num_experts", 48, "moe_top_k", 3)};
  stacks.path = "";
  stacks.gate = "gate_proj.weight", stacks.up = "up_proj.weight", stacks.down = "down_proj.weight";
  Module moe{"moe", "mixture of experts", {}, {}, {}};
  Module router{"", std::string(title(Part::router)), {}, {}, {}};
  add_router(router, "gate", d.hidden, stacks.experts.count);
  moe.children = {std::move(router), stacked_experts(stacks)};
  GatedMlp shared{d.hidden, config.size("share_expert_dim", 5120)};
  shared.path = "share_expert", shared.part = Part::shared_expert;
  const auto sparse = step3_sparse(config);
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return sparse(i) ? "MoE layers" : "dense layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        if (sparse(i))
          layer.children = {attend, moe, gated_mlp(shared)};
        else
          layer.children = {attend, gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups);
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

constexpr std::string_view kStep3Architectures[] = {"Step3TextForCausalLM"}, kStep3Types[] = {"step3_text"};

}  // namespace

void add_step3_eyes(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 1792), patch = vision->size("patch_size", 14);
  const Quantity side("image_size / patch_size", vision->size("image_size", 728).value() / patch.value());
  const Quantity out = vision->size("output_hidden_size", 4096), last = Quantity(2) * out;
  Module tower{"vision_model", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("embeddings.class_embedding", {1, hidden})
      .tensor("embeddings.patch_embedding.weight", {hidden, vision->size("num_channels", 3), patch, patch})
      .tensor("embeddings.patch_embedding.bias", {hidden})
      .tensor("embeddings.position_embedding.weight", {side * side + Quantity(1), hidden});
  EncoderBlock block{hidden, vision->size("intermediate_size", 3072)};
  block.norm1 = "layer_norm1", block.norm2 = "layer_norm2";
  block.qkv = "self_attn.qkv_proj", block.o = "self_attn.out_proj";
  tower.children = {encoder_blocks("transformer.layers.{layer}",
                                   read_layers(*vision, "num_hidden_layers", 63), block, Part::vision)};
  add_tower(tree, std::move(tower));
  Module projector{"", "strided convolutions, projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .tensor("vit_downsampler.weight", {out, hidden, 2, 2})
      .tensor("vit_downsampler.bias", {out})
      .tensor("vit_downsampler2.weight", {last, out, 3, 3})
      .tensor("vit_downsampler2.bias", {last})
      .matrix("vit_large_projector", last, text_width(tree), document.flag("projector_bias", true));
  add_tower(tree, std::move(projector));
}

const Family kStep3 = {"step3", "Step 3", kStep3Architectures, kStep3Types, {}, describe_step3, nullptr};

}  // namespace assay::families
