// Qwen (1): one matrix makes q, k and v, with a bias; `intermediate_size` is the width of w1 and w2 together.
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/own_code_2023_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

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
}

constexpr std::string_view kQwenArchitectures[] = {"QWenLMHeadModel"};
constexpr std::string_view kQwenTypes[] = {"qwen"};

}  // namespace

const Family kQwen = {"qwen",     "Qwen (1)",    kQwenArchitectures, kQwenTypes,
                      kQwenTypes, describe_qwen, forward_qwen1};

}  // namespace assay::families
