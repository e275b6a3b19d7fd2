// Baichuan and Baichuan2: a Llama whose q, k and v are one matrix, W_pack.
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/kin_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

void describe_baichuan(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 125696, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32});
  HeadAttention a = d.attention();
  a.fused = "W_pack";
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), gated_mlp(d.mlp())};
  add_buffer(layer.children[0], "rotary_emb.inv_freq", {std::max<std::uint64_t>(1, d.head_dim.value() / 2)});
  add_frame(tree, d, {layer});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

constexpr std::string_view kBaichuanArchitectures[] = {"BaichuanForCausalLM", "BaiChuanForCausalLM"};
constexpr std::string_view kBaichuanTypes[] = {"baichuan"};

}  // namespace

const Family kBaichuan = {"baichuan",     "Baichuan, Baichuan2", kBaichuanArchitectures, kBaichuanTypes,
                          kBaichuanTypes, describe_baichuan,     forward_baichuan};

}  // namespace assay::families
