// Falcon-H1: attention and Mamba-2 beside each other in every layer.
#include "core/model/families/all.h"
#include "core/model/families/forward.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// mamba_d_ssm, or mamba_expand × hidden_size where it is null, in mamba_n_heads heads.
Mamba2 read_state_space(ConfigReader& config, const Decoder& d) {
  Mamba2 m;
  m.hidden = d.hidden;
  m.heads = config.size("mamba_n_heads", 128);
  const Quantity inner =
      config.is_null("mamba_d_ssm")
          ? Quantity("mamba_expand × hidden_size", (config.size("mamba_expand", 2) * d.hidden).value())
          : config.size("mamba_d_ssm", 1024);
  m.head_dim = config.quotient(inner, m.heads, "mamba_d_head");
  m.groups = config.size("mamba_n_groups", 1);
  m.state = config.size("mamba_d_state", 256);
  m.kernel = config.size("mamba_d_conv", 4);
  m.conv_bias = config.flag("mamba_conv_bias", true);
  m.bias = config.flag("mamba_proj_bias", false);
  m.output_bias = config.flag("projectors_bias", false);
  m.norm = config.flag("mamba_rms_norm", false);
  m.path = "mamba";
  return m;
}

void describe_falcon_h1(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 128000,
                                  .hidden = 4096,
                                  .intermediate = 14336,
                                  .layers = 32,
                                  .heads = 32,
                                  .kv_heads = 8});
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  const Mamba2 mamba = read_state_space(config, d);
  GatedMlp mlp = d.mlp();
  mlp.path = "feed_forward";
  mlp.bias = config.flag("mlp_bias", false);
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "input_layernorm", d.hidden, Role::input_norm);
  add_norm(layer, "pre_ff_layernorm", d.hidden, Role::pre_feedforward_norm);
  layer.children = {mamba2(mamba), attention(a), gated_mlp(mlp)};
  Frame frame;
  frame.final_norm = "model.final_layernorm";
  add_frame(tree, d, {layer}, frame);
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  tree.recurrent.push_back(geometry(mamba, all_layers(d.layers)));
}

constexpr ForwardClass kFalconH1Class = {.epsilon = 1e-5,
                                         .rope = {.context = 8192},
                                         .embedding_scale = {"embedding_multiplier"},
                                         .head_scale = {"lm_head_multiplier"}};

constexpr std::string_view kFalconH1Architectures[] = {"FalconH1ForCausalLM"},
                           kFalconH1Types[] = {"falcon_h1"};

}  // namespace

const Family kFalconH1 = {"falcon_h1", "Falcon-H1",        kFalconH1Architectures, kFalconH1Types,
                          {},          describe_falcon_h1, read_as<kFalconH1Class>};

}  // namespace assay::families
