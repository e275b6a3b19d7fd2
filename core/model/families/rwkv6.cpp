// RWKV-6 (Finch, arXiv 2404.05892) as RWKV publishes it (RWKV/v6-Finch-*-HF): matrices of low rank make the decay and how each
// input is mixed with the token before. Source: that code. flash-linear-attention's class has other names under the same
// model_type and is not described.
#include "core/model/blocks.h"
#include "core/model/families/all_hub.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Finch {
  Quantity hidden, width, heads, head_dim, mix_rank, decay_rank;
};

Module finch_time_mixing(const Finch& f) {
  Module module{"attention", "time mixing (RWKV-6)", {}, {}, {}};
  const std::uint64_t heads = f.heads.value();
  for (const char* name :
       {"time_maa_x", "time_maa_w", "time_maa_k", "time_maa_v", "time_maa_r", "time_maa_g"})
    module.tensors.push_back(parameter(name, {1, 1, f.hidden}, Role::residual_mix, Part::attention));
  module.tensors.push_back(
      parameter("time_maa_w1", {f.hidden, Quantity(5) * f.mix_rank}, Role::residual_mix, Part::attention));
  module.tensors.push_back(
      parameter("time_maa_w2", {5, f.mix_rank, f.hidden}, Role::residual_mix, Part::attention));
  module.tensors.push_back(parameter("time_decay", {1, 1, f.width}, Role::decay, Part::attention));
  module.tensors.push_back(
      parameter("time_decay_w1", {f.hidden, f.decay_rank}, Role::recurrent_decay, Part::attention));
  module.tensors.push_back(
      parameter("time_decay_w2", {f.decay_rank, f.width}, Role::recurrent_decay, Part::attention));
  module.tensors.push_back(parameter("time_faaaa", {f.heads, f.head_dim}, Role::skip, Part::attention));
  for (const auto& [name, role] : {std::pair("receptance", Role::q),
                                   {"key", Role::k},
                                   {"value", Role::v},
                                   {"gate", Role::recurrent_gate}})
    add_linear(module, {.name = name,
                        .in = f.hidden,
                        .out = f.width,
                        .role = role,
                        .part = Part::attention,
                        .partition = Partition::columns,
                        .units = heads});
  add_linear(module, {.name = "output",
                      .in = f.width,
                      .out = f.hidden,
                      .role = Role::recurrent_out,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = heads});
  add_norm(module, "ln_x", f.hidden, Role::recurrent_norm, true, Part::attention);
  return module;
}

Module finch_channel_mixing(const Quantity& hidden, const Quantity& width) {
  Module module{"feed_forward", "channel mixing", {}, {}, {}};
  for (const char* name : {"time_maa_k", "time_maa_r"})
    module.tensors.push_back(parameter(name, {1, 1, hidden}, Role::residual_mix, Part::dense_mlp));
  add_linear(module, {.name = "key",
                      .in = hidden,
                      .out = width,
                      .role = Role::mlp_up,
                      .part = Part::dense_mlp,
                      .partition = Partition::columns});
  add_linear(module, {.name = "receptance",
                      .in = hidden,
                      .out = hidden,
                      .role = Role::recurrent_gate,
                      .part = Part::dense_mlp});
  add_linear(module, {.name = "value",
                      .in = width,
                      .out = hidden,
                      .role = Role::mlp_down,
                      .part = Part::dense_mlp,
                      .partition = Partition::rows});
  return module;
}

void describe_rwkv6(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", 65536);
  d.hidden = config.size("hidden_size");
  config.size("num_hidden_layers");
  d.layers = read_layers(config, "num_hidden_layers", 0);
  d.tied = config.tied_embeddings(false);
  note_sizes(tree, d);
  const Quantity width = config.size("attention_hidden_size", d.hidden),
                 head_dim = config.size("head_size", 64);
  config.require(width.value() == d.hidden.value(),
                 "attention_hidden_size is not hidden_size, which the class's norm of the heads needs");
  // The class has no key for its ranks: the 7B's are twice the others'.
  const bool wide = d.hidden.value() == 4096;
  const Finch f{d.hidden, width,          config.quotient(width, head_dim, "heads"),
                head_dim, wide ? 64 : 32, wide ? 128 : 64};
  const Quantity inner =
      config.size("intermediate_size", Quantity("3.5 × hidden_size", 7 * d.hidden.value() / 2 / 32 * 32));
  const auto groups = group_layers(
      "rwkv.blocks.{layer}", d.layers, [](std::uint64_t i) { return i == 0 ? "first layer" : "layers"; },
      [&](Module& layer, std::uint64_t i) {
        if (i == 0) add_norm(layer, "pre_ln", d.hidden, Role::embedding_norm, true);
        add_norm(layer, "ln1", d.hidden, Role::input_norm, true);
        add_norm(layer, "ln2", d.hidden, Role::pre_feedforward_norm, true);
        layer.children = {finch_time_mixing(f), finch_channel_mixing(d.hidden, inner)};
      });
  add_frame(tree, d, groups,
            {.embedding = "rwkv.embeddings", .final_norm = "rwkv.ln_out", .head = "head", .norm_bias = true});
  // The last input of each half; of each head a matrix.
  tree.recurrent.push_back({.title = "RWKV-6",
                            .layers = all_layers(d.layers),
                            .heads = f.heads.value(),
                            .conv_values = 2 * d.hidden.value(),
                            .state_values = (width * head_dim).value()});
}

constexpr std::string_view kRwkv6Architectures[] = {"Rwkv6ForCausalLM"};

}  // namespace

const Family kRwkv6 = {"rwkv6", "RWKV-6", kRwkv6Architectures, {}, {}, describe_rwkv6};

}  // namespace assay::families
