// PLaMo 3: windows in all layers but one of eight, norms before and behind each block, whose stored weights are offsets. Sources:
// vLLM 0.32's plamo3.py, llama.cpp's conversion/plamo.py, Preferred Networks' configuration class.
#include "core/model/families/all_mixtures.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/own_code_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

void describe_plamo3(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {.sizes = {.vocabulary = 32000,
                            .hidden = 4096,
                            .intermediate = 13312,
                            .layers = 32,
                            .heads = 32,
                            .kv_heads = 4,
                            .head_dim = 128,
                            .tied = true},
                  .input_norm = "pre_mixer_norm",
                  .mlp_norm = "pre_mlp_norm",
                  .after_attention = "post_mixer_norm",
                  .after_mlp = "post_mlp_norm",
                  .layer_path = "model.layers.layers.{layer}"};
  kin.heads.path = "mixer";
  kin.heads.fused = "qkv_proj";
  kin.heads.qk_norm = QkNorm::per_head;
  kin.mlp.fused = "gate_up_proj";
  const Decoder d = read_decoder(config, tree, kin.sizes);
  describe_kin(config, tree, kin, d);
  const std::uint64_t window = config.size("window_size", 2048).value(),
                      pattern = config.size("sliding_window_pattern", 8).value();
  tree.attention.clear();
  add_geometry(tree, d.attention(), d.layers,
               windowed_layers(config, d.layers, [=](std::uint64_t i) { return (i + 1) % pattern != 0; }),
               window);
}

constexpr std::string_view kPlamo3Architectures[] = {"Plamo3ForCausalLM", "PLaMo3ForCausalLM"},
                           kPlamo3Types[] = {"plamo3"};

}  // namespace

const Family kPlamo3 = {"plamo3", "PLaMo 3",       kPlamo3Architectures, kPlamo3Types,
                        {},       describe_plamo3, forward_plamo3};

}  // namespace assay::families
