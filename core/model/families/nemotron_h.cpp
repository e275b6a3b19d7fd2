// Nemotron-H, Nemotron-3 Nano, Super and Ultra: each layer is one mixer behind one norm: Mamba-2, attention without
// rotary positions, an MLP of two matrices (relu²), or experts of that kind, in a latent space from Super on. Puzzle's models
// say in block_configs how wide and how many the experts of each layer are.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/model/families/all.h"
#include "core/model/families/forward.h"
#include "core/model/families/mixture_forward.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// 'M' Mamba-2, 'E' experts, '*' attention, '-' an MLP.
std::string kinds_of(ConfigReader& config, std::string_view pattern_key, std::string_view list_key,
                     std::string otherwise) {
  std::string kinds;
  if (const auto list = config.texts(list_key)) {
    for (const std::string& word : *list) {
      const bool mamba = word == "mamba" || word == "mamba2" || word == "linear_attention";
      const bool attends = word == "attention" || word == "full_attention";
      config.require(mamba || attends || word == "moe" || word == "mlp",
                     std::string(list_key) + " holds \"" + word + "\", which this family does not have");
      kinds += mamba ? 'M' : attends ? '*' : word == "moe" ? 'E' : '-';
    }
    return kinds;
  }
  kinds = config.has(pattern_key) ? config.text(pattern_key, "") : std::move(otherwise);
  config.require(kinds.find_first_not_of("ME*-") == std::string::npos,
                 std::string(pattern_key) + " holds another letter than M, E, * and -");
  return kinds;
}

// Of block_configs: what a layer has in place of what the config says of all. Sizes of other mixers than experts are those
// of all in the published models.
struct PuzzleBlock {
  char kind;
  std::optional<Quantity> experts, width;
  std::optional<std::uint64_t> active;
};
std::vector<PuzzleBlock> read_puzzle_blocks(ConfigReader& config, std::string_view key) {
  std::vector<PuzzleBlock> blocks;
  for (const ModelConfig& section : config.config().text_sections(key)) {
    ConfigReader block(section, key);
    const std::string word = block.text("block_type", "");
    const bool experts = word == "moe";
    config.require(experts || word == "mamba" || word == "attention" || word == "mlp",
                   std::string(key) + " holds a block_type that this family does not have");
    config.require(experts || section.text().size() == 1,
                   std::string(key) + " has sizes for a layer without experts: those are not described");
    blocks.push_back({experts               ? 'E'
                      : word == "mamba"     ? 'M'
                      : word == "attention" ? '*'
                                            : '-',
                      block.optional_size("n_routed_experts"), block.optional_size("moe_intermediate_size"),
                      block.optional_number("num_experts_per_tok")});
  }
  return blocks;
}
std::string kinds_of(const std::vector<PuzzleBlock>& blocks) {
  std::string kinds;
  for (const PuzzleBlock& block : blocks) kinds += block.kind;
  return kinds;
}

struct Mixers {
  HeadAttention attention;
  Mamba2 mamba;
  GatedMlp mlp;
  Mixture mixture;
};

// The most experts of any layer, and the most that a token visits, where layers differ.
Experts read_puzzle_experts(ConfigReader& config, ModuleTree& tree, const std::vector<PuzzleBlock>& blocks) {
  Experts most;
  for (const PuzzleBlock& block : blocks) {
    if (block.kind != 'E') continue;
    const Quantity count = block.experts ? *block.experts : config.size("n_routed_experts|num_local_experts");
    config.require(block.active && *block.active >= 1 && *block.active <= count.value(),
                   "block_configs has no num_experts_per_tok for a layer, or more than its experts");
    if (count.value() > most.count.value()) most.count = count;
    most.active = std::max(most.active, *block.active);
  }
  tree.experts = most.count.value(), tree.experts_per_token = most.active;
  return most;
}

Mixture read_mixture(ConfigReader& config, ModuleTree& tree, const Quantity& hidden,
                     const std::vector<PuzzleBlock>& blocks) {
  Mixture m{hidden,
            blocks.empty() ? read_experts(config, tree, "n_routed_experts|num_local_experts", 8,
                                          "num_experts_per_tok", 2)
                           : read_puzzle_experts(config, tree, blocks),
            blocks.empty() ? config.size("moe_intermediate_size", 7688) : Quantity(1)};
  m.path = "mixer";
  m.gate.clear();
  m.correction = "gate.e_score_correction_bias";
  m.shared_bias = m.latent_bias = config.flag("mlp_bias", false);
  m.latent = config.optional_size("moe_latent_size");
  const std::uint64_t shared = config.optional_number("n_shared_experts", 1).value_or(0);
  if (shared > 0)
    m.shared_width =
        Quantity("n_shared_experts", shared) * config.size("moe_shared_expert_intermediate_size", 7688);
  return m;
}

Mixers read_mixers(ConfigReader& config, ModuleTree& tree, const Decoder& d, const std::string& kinds,
                   const std::vector<PuzzleBlock>& blocks) {
  Mixers x;
  if (kinds.find('*') != std::string::npos) {
    const Quantity kv = config.size("num_key_value_heads", 8);
    config.require_divides(kv, d.heads);
    x.attention = {d.hidden, d.heads, kv, config.size("head_dim|attention_head_dim", 128)};

    x.attention.path = "mixer";
  }
  if (kinds.find('M') != std::string::npos) {
    x.mamba = {d.hidden,
               config.size("mamba_num_heads", 128),
               config.size("mamba_head_dim", 64),
               config.size("n_groups|mamba_n_groups", 8),
               config.size("ssm_state_size", 128),
               config.size("conv_kernel|mamba_d_conv", 4)};
    x.mamba.conv_bias = config.flag("use_conv_bias", true);
    x.mamba.bias = config.flag("use_bias", false);
  }
  if (kinds.find('-') != std::string::npos) {
    x.mlp = {d.hidden, config.size("intermediate_size", 21504), "mixer"};
    x.mlp.gate.clear();
    x.mlp.bias = config.flag("mlp_bias", false);
  }
  if (kinds.find('E') != std::string::npos) x.mixture = read_mixture(config, tree, d.hidden, blocks);
  return x;
}

Module mixer(const Mixers& x, char kind, const PuzzleBlock* block = nullptr) {
  Mixture m = x.mixture;
  if (block != nullptr && kind == 'E') {
    if (block->experts) m.experts.count = *block->experts;
    m.experts.active = *block->active;
    m.expert_width = *block->width;
  }
  switch (kind) {
    case 'M': return mamba2(x.mamba);
    case '*': return attention(x.attention);
    case 'E': return mixture(m);
    default: return gated_mlp(x.mlp);
  }
}

const char* title_of(char kind) {
  return kind == 'M'   ? "Mamba-2 layers"
         : kind == '*' ? "attention layers"
         : kind == 'E' ? "MoE layers"
                       : "MLP layers";
}

// Layers with the same tensors, as group_layers asks.
std::string title_of(const PuzzleBlock& block) {
  if (block.kind != 'E') return title_of(block.kind);
  return fmt::format("MoE layers: {} of {}, {} wide", *block.active,
                     block.experts ? std::to_string(block.experts->value()) : "all", block.width->value());
}

// mtp.layers.0 … : the pattern's layers; projection and input norms stand in the first, the last norm in the last.
void add_prediction(ModuleTree& tree, const Decoder& d, const Mixers& x, const std::string& kinds,
                    const std::vector<PuzzleBlock>& blocks) {
  if (kinds.empty()) return;
  Module mtp{"mtp", "multi-token prediction", {}, {}, {}};
  mtp.children = group_layers(
      "layers.{layer}", Quantity(kinds.size()),
      [&](std::uint64_t i) { return std::string(title_of(kinds[i])) + " " + std::to_string(i); },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, "norm", d.hidden, Role::input_norm);
        layer.children = {mixer(x, kinds[i], blocks.empty() ? nullptr : &blocks[i % blocks.size()])};
        if (i == 0) layer.children.push_back(mtp_own(d.hidden, {.final_norm = ""}));
        if (i + 1 == kinds.size())
          add_norm(layer, "final_layernorm", d.hidden, Role::final_norm, false, Part::mtp);
      });
  tree.mtp.push_back(std::move(mtp));
  const auto attends = static_cast<std::uint64_t>(std::count(kinds.begin(), kinds.end(), '*'));
  if (attends > 0) tree.mtp_attention.push_back(geometry(x.attention, layers_after(d.layers, attends)));
}

void describe_nemotron_h(ConfigReader& config, ModuleTree& tree) {
  const std::vector<PuzzleBlock> blocks = read_puzzle_blocks(config, "block_configs"),
                                 mtp_blocks = read_puzzle_blocks(config, "mtp_block_configs");
  for (const auto* list : {&blocks, &mtp_blocks}) {
    for (const PuzzleBlock& block : *list)
      config.require(
          block.kind != 'E' || (block.width && block.active),
          "block_configs has no moe_intermediate_size or num_experts_per_tok for a layer of experts");
  }
  const std::string kinds = !blocks.empty()
                                ? kinds_of(blocks)
                                : kinds_of(config, "hybrid_override_pattern", "layers_block_type|layer_types",
                                           config.has("num_hidden_layers") ? "" : "ME*-");
  config.require(!kinds.empty(),
                 "neither hybrid_override_pattern nor layers_block_type says what the layers are");
  Decoder d;
  d.vocabulary = config.size("vocab_size", 131072);
  d.hidden = config.size("hidden_size", 4096);
  d.layers = config.has("num_hidden_layers") ? read_layers(config, "num_hidden_layers", 0)
                                             : Quantity("layers_block_type", kinds.size());
  config.require(d.layers.value() == kinds.size(),
                 "num_hidden_layers and the layers of the pattern are not as many");
  d.heads = config.size("num_attention_heads", 32);
  d.tied = false;  // whatever tie_word_embeddings says: the class ties nothing
  note_sizes(tree, d);
  const std::uint64_t predicted = read_mtp_layers(config, 0);
  std::string mtp;
  if (predicted > 0) {
    config.require(blocks.empty() || !mtp_blocks.empty(),
                   "num_nextn_predict_layers is set, and mtp_block_configs empty");
    const std::string once =
        !mtp_blocks.empty() ? kinds_of(mtp_blocks)
                            : kinds_of(config, "mtp_hybrid_override_pattern", "mtp_layers_block_type", "*E");
    config.require(predicted * once.size() <= kinds.size(),
                   "num_nextn_predict_layers are more than the layers");
    for (std::uint64_t i = 0; i < predicted; ++i) mtp += once;
  }
  const Mixers x = read_mixers(config, tree, d, kinds + mtp, blocks);
  const auto of_kind = [&](char kind) {
    return layers_where(d.layers, [&](std::uint64_t i) { return kinds[i] == kind; });
  };
  const auto groups = group_layers(
      "backbone.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return blocks.empty() ? std::string(title_of(kinds[i])) : title_of(blocks[i]); },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, "norm", d.hidden, Role::input_norm);
        layer.children = {mixer(x, kinds[i], blocks.empty() ? nullptr : &blocks[i])};
      });
  add_frame(tree, d, groups,
            {.embedding = "backbone.embeddings", .final_norm = "backbone.norm_f", .head = "lm_head"});
  const auto attends = of_kind('*'), scans = of_kind('M');
  if (!attends.empty()) tree.attention.push_back(geometry(x.attention, attends));
  if (!scans.empty()) tree.recurrent.push_back(geometry(x.mamba, scans));
  add_prediction(tree, d, x, mtp, mtp_blocks);
  tree.aliases.push_back({"backbone.", "model."});
}

Hyperparameters forward_nemotron_h(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree,
                                   {.epsilon = 1e-5,
                                    .rope = {.context = 4096},
                                    .activation_key = "mlp_hidden_act",
                                    .activation = "relu2",
                                    .epsilon_key = "layer_norm_epsilon",
                                    .rotates = false});
  read_groups(config, tree, true, h);
  config.require(
      h.routing.groups == 1 || config.config().text_sections("block_configs").empty(),
      "block_configs is there, and n_group not 1: groups of experts that differ by layer are counted, "
      "and not computed");
  return h;
}

constexpr std::string_view kNemotronHArchitectures[] = {"NemotronHForCausalLM", "NemotronHPuzzleForCausalLM"};
constexpr std::string_view kNemotronHTypes[] = {"nemotron_h", "nemotron_h_puzzle"};

}  // namespace

const Family kNemotronH = {"nemotron_h", "Nemotron-H, Nemotron 3", kNemotronHArchitectures, kNemotronHTypes,
                           {},           describe_nemotron_h,      forward_nemotron_h};

}  // namespace assay::families
