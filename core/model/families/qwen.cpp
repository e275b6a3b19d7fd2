// Qwen (1): one matrix makes q, k and v, with a bias; `intermediate_size` is the width of w1 and w2 together.
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/own_code_2023_forward.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// Qwen-VL (modeling_qwen.py's visual.py): CLIP's blocks, and 256 queries that attend to what these make of an image.
void add_visual(ConfigReader& config, ModuleTree& tree) {
  constexpr std::uint64_t kPlaces = 256;
  TowerConfig visual(config, tree, "visual");
  if (!visual) return;
  const Quantity width = visual->size("width", 1664), patch = visual->size("patch_size", 14);
  const Quantity out = visual->size("output_dim", 4096), queries = visual->size("n_queries", 256);
  const Quantity wide("width × mlp_ratio",
                      static_cast<std::uint64_t>(static_cast<double>(width.value()) *
                                                 visual->real("mlp_ratio", 4.9231, 1e-3, 1024)));
  Module tower{"transformer.visual", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("conv1.weight", {width, 3, patch, patch})
      .tensor("positional_embedding", {kPlaces, width})
      .norm("ln_pre", width, true)
      .norm("ln_post", out, true)
      .tensor("proj", {out, out});
  EncoderBlock block{width, wide};
  block.norm1 = "ln_1", block.norm2 = "ln_2";
  block.qkv = "attn.in_proj", block.o = "attn.out_proj";
  block.up = "mlp.c_fc", block.down = "mlp.c_proj";
  Module pool{"attn_pool", "queries", {}, {}, {}};
  Tower asks(pool, Part::projector);
  asks.tensor("query", {queries, out})
      .tensor("pos_embed", {queries, out})
      .norm("ln_q", out, true)
      .norm("ln_kv", out, true)
      .tensor("attn.in_proj_weight", {Quantity(3) * out, out})
      .tensor("attn.in_proj_bias", {Quantity(3) * out})
      .matrix("attn.out_proj", out, out, true);
  if (width.value() != out.value()) asks.matrix("kv_proj", width, out, false);
  tower.children = {encoder_blocks("transformer.resblocks.{layer}", read_layers(*visual, "layers", 48), block,
                                   Part::vision),
                    std::move(pool)};
  add_tower(tree, std::move(tower));
}

void describe_qwen(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_decoder(
      config, tree, {.vocabulary = 151936, .hidden = 4096, .intermediate = 22016, .layers = 32, .heads = 32});
  d.head_dim = config.size("kv_channels|head_dim", 128);
  d.intermediate = config.quotient(d.intermediate, 2, "intermediate_size / 2");
  const bool biased = !config.flag("no_bias", true);

  HeadAttention a = d.attention();
  a.path = "attn";
  a.fused = "c_attn";
  a.o = "c_proj";
  a.qkv_bias = true;
  a.output_bias = biased;
  GatedMlp mlp = d.mlp();
  mlp.gate = "w2";  // silu is applied to w2's output (modeling_qwen.py, QWenMLP)
  mlp.up = "w1";
  mlp.down = "c_proj";
  mlp.bias = biased;

  Module layer = layers("transformer.h.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "ln_1", d.hidden, Role::input_norm);
  add_norm(layer, "ln_2", d.hidden, Role::pre_feedforward_norm);
  layer.children = {attention(a), gated_mlp(mlp)};
  add_frame(tree, d, {layer},
            {.embedding = "transformer.wte", .final_norm = "transformer.ln_f", .head = "lm_head"});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  add_visual(config, tree);
}

constexpr std::string_view kQwenArchitectures[] = {"QWenLMHeadModel"};
constexpr std::string_view kQwenTypes[] = {"qwen"};

}  // namespace

const Family kQwen = {"qwen",     "Qwen (1)",    kQwenArchitectures, kQwenTypes,
                      kQwenTypes, describe_qwen, forward_qwen1};

}  // namespace assay::families
