// Mixtures that llama.cpp and MLX run and the large engines have no class for: GroveMoE, Klear, Maple, and the code of
// Microsoft's Phi-2, of whose layers others have made mixtures. Sources: MLX-LM 0.32.2 (models/Klear.py, phixtral.py), llama.cpp's
// converter and loaders (conversion/grovemoe.py, maple.py).
#include <algorithm>

#include "core/model/families/all_local.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sparse_layers.h"

namespace assay::families {
namespace {

using namespace blocks;

// Sizes that no class at hand has a default for.
constexpr DecoderDefaults kSizes = {.vocabulary = 1, .hidden = 1, .intermediate = 1, .layers = 1, .heads = 1};
void require_sizes(ConfigReader& config, std::initializer_list<const char*> more) {
  for (const char* key : {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"})
    config.size(key);
  for (const char* key : more) config.size(key);
}

LlamaKin qwen_mixture() {
  LlamaKin kin = {.sizes = kSizes,
                  .bias_keys = "attention_bias",
                  .experts = ExpertKin{.count_keys = "num_experts|num_local_experts",
                                       .count = 1,
                                       .active_keys = "num_experts_per_tok",
                                       .active = 1,
                                       .width_keys = "moe_intermediate_size",
                                       .width = 1}};
  kin.heads.qk_norm = QkNorm::per_head;
  return kin;
}

// Of each layer that has one: the module of its experts, which begins with the router.
template <class Change>
void in_mixtures(ModuleTree& tree, const Change& change) {
  for (Module& layer : tree.modules) {
    for (Module& block : layer.children) {
      const bool routes = !block.children.empty() && !block.children.front().tensors.empty() &&
                          block.children.front().tensors.front().role == Role::router;
      if (routes) change(block);
    }
  }
}

// GroveMoE (arXiv 2508.07785): a Qwen3-MoE in whose layers every two experts share an adjugate one, computed once a token
// however many of its experts are chosen: told here as for the most, where each chosen one has another's. As wide as a head, in
// pairs: numbers of its code, modeling_grove_moe.py.
void describe_grove_moe(ConfigReader& config, ModuleTree& tree) {
  require_sizes(config,
                {"num_key_value_heads", "num_experts", "num_experts_per_tok", "moe_intermediate_size"});
  LlamaKin kin = qwen_mixture();
  kin.experts->names.correction = "expert_bias";
  const Decoder d = read_decoder(config, tree, kin.sizes);
  describe_kin(config, tree, kin, d, qwen_sparse_layers(config));
  const Quantity pairs("num_experts / 2", tree.experts / 2);
  config.require(tree.experts % 2 == 0, "num_experts is not even: GroveMoE's experts go in pairs");
  in_mixtures(tree, [&](Module& block) {
    const GatedMlp adjugate{
        .hidden = d.hidden, .intermediate = config.size("head_dim", 128), .part = Part::routed_expert};
    block.children.push_back(routed_experts(adjugate, pairs, std::min(tree.experts_per_token, pairs.value()),
                                            "chunk_experts.{expert}"));
  });
}

// Klear: routed and shared experts weighed by a softmax over two scores of each token.
void describe_klear(ConfigReader& config, ModuleTree& tree) {
  require_sizes(config, {"num_key_value_heads", "num_experts", "num_experts_per_tok", "moe_intermediate_size",
                         "n_shared_experts"});
  LlamaKin kin = qwen_mixture();
  kin.experts->shared_keys = "n_shared_experts";
  kin.experts->names.correction = "expert_bias";
  const Decoder d = read_decoder(config, tree, kin.sizes);
  describe_kin(config, tree, kin, d, qwen_sparse_layers(config));
  in_mixtures(tree, [&](Module& block) {
    add_linear(block.children.front(), {.name = "coefficient",
                                        .in = d.hidden,
                                        .out = 2,
                                        .role = Role::shared_expert_gate,
                                        .part = Part::router,
                                        .bias = true,
                                        .quantizable = false});
  });
}

void describe_maple(ConfigReader& config, ModuleTree& tree) {
  require_sizes(config, {"num_key_value_heads", "num_experts", "num_experts_per_tok", "moe_intermediate_size",
                         "sliding_window"});
  config.require(config.optional_number("num_shared_experts").value_or(0) == 0,
                 "num_shared_experts: Maple has been described without");
  LlamaKin kin = qwen_mixture();
  kin.sizes.intermediate = 0;
  kin.windows = true;
  describe_kin(config, tree, kin);
}

// Phi-2 as its own code has it: one norm a layer, attention and MLP side by side, everything with biases. Of mixtures each expert
// is such an MLP (Phixtral).
void describe_phi_msft(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {
      .sizes = {.vocabulary = 50304, .hidden = 1024, .intermediate = 0, .layers = 20, .heads = 16},
      .bias_keys = "",
      .bias = true,
      .input_norm = "ln",
      .mlp_norm = "",
      .norm_bias = true,
      .no_final_norm = true,
      .layer_path = "transformer.h.{layer}",
      .frame = {.embedding = "transformer.embd.wte", .head = "lm_head.linear", .head_bias = true}};
  kin.heads.path = "mixer", kin.heads.fused = "Wqkv", kin.heads.o = "out_proj";
  kin.mlp.gate = "", kin.mlp.up = "fc1", kin.mlp.down = "fc2", kin.mlp.bias = true;
  Decoder d = read_decoder(config, tree, kin.sizes);
  d.intermediate = config.optional_number("n_inner") ? config.size("n_inner") : Quantity(4) * d.hidden;
  if (const auto heads = config.optional_number("n_head_kv")) d.kv_heads = Quantity("n_head_kv", *heads);
  config.require_divides(d.kv_heads, d.heads);
  describe_kin(config, tree, kin, d);
  Module norm{"lm_head", "final norm", {}, {}, {}};
  add_norm(norm, "ln", d.hidden, Role::final_norm, true);
  tree.modules.insert(tree.modules.end() - 1, std::move(norm));
  if (config.optional_number("num_local_experts").value_or(0) < 2) return;
  const Experts experts = read_experts(config, tree, "num_local_experts", 4, "num_experts_per_tok", 2);
  GatedMlp expert = kin.mlp;
  expert.hidden = d.hidden, expert.intermediate = d.intermediate, expert.part = Part::routed_expert;
  for (Module& layer : tree.modules) {
    if (layer.repeat.over != Repeat::Over::layers) continue;
    Module moe{"moe", "experts", {}, {}, {}};
    add_router(moe, "gate", d.hidden, experts.count);
    moe.children = {routed_experts(expert, experts.count, experts.active, "mlp.{expert}")};
    layer.children.back() = std::move(moe);
  }
}

constexpr std::string_view kGroveArchitectures[] = {"GroveMoeForCausalLM"}, kGroveTypes[] = {"grove_moe"};
constexpr std::string_view kKlearArchitectures[] = {"KlearMoeForCausalLM"},
                           kKlearTypes[] = {"Klear", "klear"};
constexpr std::string_view kMapleArchitectures[] = {"MapleForCausalLM"}, kMapleTypes[] = {"maple"};
// Its class is called as that of transformers is: found by its type (families.cpp).
constexpr std::string_view kPhiMsftTypes[] = {"phi-msft"};

}  // namespace

const Family kGroveMoe = {"grove_moe", "GroveMoE", kGroveArchitectures, kGroveTypes, {}, describe_grove_moe};
const Family kKlear = {"klear", "Klear", kKlearArchitectures, kKlearTypes, {}, describe_klear};
const Family kMaple = {"maple", "Maple", kMapleArchitectures, kMapleTypes, {}, describe_maple};
const Family kPhiMsft = {"phi_msft", "Phi 2 (own code), Phixtral", {}, kPhiMsftTypes, {}, describe_phi_msft};

}  // namespace assay::families
