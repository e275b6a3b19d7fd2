// InternLM2 and 2.5: a Llama under other names, q, k and v in one matrix (grouped by key head).
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/kin_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

void describe_internlm2(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 103168, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32});
  HeadAttention a = d.attention();
  a.path = "attention";
  a.fused = "wqkv";
  a.interleaved = true;
  a.o = "wo";
  a.qkv_bias = a.output_bias = config.flag("bias|attention_bias", true);
  GatedMlp mlp = d.mlp();
  mlp.path = "feed_forward";
  mlp.gate = "w1", mlp.up = "w3", mlp.down = "w2";
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "attention_norm", d.hidden, Role::input_norm);
  add_norm(layer, "ffn_norm", d.hidden, Role::pre_feedforward_norm);
  layer.children = {attention(a), gated_mlp(mlp)};
  add_frame(tree, d, {layer},
            {.embedding = "model.tok_embeddings", .final_norm = "model.norm", .head = "output"});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

constexpr std::string_view kInternlm2Architectures[] = {"InternLM2ForCausalLM"};
constexpr std::string_view kInternlm2Types[] = {"internlm2"};

}  // namespace

const Family kInternlm2 = {"internlm2",      "InternLM2, InternLM2.5", kInternlm2Architectures,
                           kInternlm2Types,  kInternlm2Types,          describe_internlm2,
                           forward_internlm2};

}  // namespace assay::families
