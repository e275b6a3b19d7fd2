// DBRX: one fused matrix of q, k and v, and experts whose rows lie one behind the other in three matrices.
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/odd_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

// [experts × width, hidden], each expert's rows cut by itself.
void add_rows_of_experts(Module& module, const std::string& name, const Experts& experts,
                         const Quantity& width, const Quantity& hidden, Role role) {
  TensorSpec spec = parameter(name, {experts.count * width, hidden}, role, Part::routed_expert);
  spec.quantizable = true;
  spec.input_major = role == Role::mlp_down;
  spec.stacked = experts.count.value();
  spec.stacked_active = experts.active;
  const std::vector<PartitionedPart> members(experts.count.value(), {role, width.value(), width.value()});
  spec.parallel = {role == Role::mlp_down ? Partition::rows : Partition::columns, 0, members};
  module.tensors.push_back(std::move(spec));
}

void describe_dbrx(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", 32000);
  d.hidden = config.size("d_model|hidden_size", 2048);
  d.layers = read_layers(config, "n_layers|num_hidden_layers", 24);
  d.heads = config.size("n_heads|num_attention_heads", 16);
  d.head_dim = config.quotient(d.hidden, d.heads, "head_dim");
  d.tied = config.tied_embeddings(false);
  note_sizes(tree, d);
  const auto attn_config = config.config().text_section("attn_config");
  const auto ffn_config = config.config().text_section("ffn_config");
  config.require(attn_config && ffn_config, "attn_config or ffn_config is missing");
  ConfigReader attn(*attn_config, "dbrx"), ffn(*ffn_config, "dbrx");
  d.kv_heads = attn.size("kv_n_heads", 1);
  config.require_divides(d.kv_heads, d.heads);
  const Experts experts = read_experts(ffn, tree, "moe_num_experts", 4, "moe_top_k", 1);
  const Quantity width = ffn.size("ffn_hidden_size", 3584);

  HeadAttention a = d.attention();
  a.path = "norm_attn_norm.attn";
  a.fused = "Wqkv", a.o = "out_proj";
  Module mlp{"ffn", "mixture of experts", {}, {}, {}};
  add_router(mlp, "router.layer", d.hidden, experts.count);
  Module stacks{"experts.mlp", std::string(title(Part::routed_expert)), {}, {}, {}};
  add_rows_of_experts(stacks, "w1", experts, width, d.hidden, Role::mlp_gate);
  add_rows_of_experts(stacks, "v1", experts, width, d.hidden, Role::mlp_up);
  add_rows_of_experts(stacks, "w2", experts, width, d.hidden, Role::mlp_down);
  mlp.children = {std::move(stacks)};
  Module layer = layers("transformer.blocks.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "norm_attn_norm.norm_1", d.hidden, Role::input_norm);
  add_norm(layer, "norm_attn_norm.norm_2", d.hidden, Role::pre_feedforward_norm);
  layer.children = {attention(a), std::move(mlp)};
  add_frame(tree, d, {layer},
            {.embedding = "transformer.wte", .final_norm = "transformer.norm_f", .head = "lm_head"});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

constexpr std::string_view kDbrxArchitectures[] = {"DbrxForCausalLM"}, kDbrxTypes[] = {"dbrx"};

}  // namespace

const Family kDbrx = {"dbrx", "DBRX", kDbrxArchitectures, kDbrxTypes, {}, describe_dbrx, forward_dbrx};

}  // namespace assay::families
