// Moondream 2 and 3 (github.com/vikhyat/moondream, whose HfMoondream keeps everything behind "model."): one norm before
// attention and MLP, which stand side by side, a ViT, and what turns places into vectors and back. Moondream 3 has experts,
// and vectors that scale queries and values (vLLM 0.33's moondream3.py, which takes no tensor of places).
#include <nlohmann/json.hpp>

#include "core/model/families/all_more.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// A part of the object "config", or, where that says nothing of it, an empty one: published configs leave all to the class.
class MoonSection {
 public:
  MoonSection(const ModelConfig& config, ModuleTree& tree, const std::string& key)
      : tree_(tree), key_("config." + key), section_(find(config, key)), reader_(section_, "moondream") {}
  ~MoonSection() {
    for (const DefaultTaken& taken : reader_.defaults_taken())
      tree_.defaults.push_back({key_ + "." + taken.key, taken.value, taken.number});
  }
  MoonSection(const MoonSection&) = delete;
  MoonSection& operator=(const MoonSection&) = delete;
  ConfigReader& operator*() { return reader_; }
  ConfigReader* operator->() { return &reader_; }

 private:
  static ModelConfig find(const ModelConfig& config, const std::string& key) {
    const auto whole = config.section("config");
    if (auto section = whole ? whole->section(key) : std::nullopt) return *section;
    return ModelConfig::from_json(ParsedJson{{"model_type", "moondream"}}, config.source());
  }
  ModuleTree& tree_;
  std::string key_;
  ModelConfig section_;
  ConfigReader reader_;
};

struct MoonExperts {
  std::uint64_t from;  // the first layer with experts
  StackedExperts stacks;
};

MoonExperts read_moon_experts(ConfigReader& text, ModuleTree& tree, const Quantity& hidden) {
  const auto section = text.config().section("moe");
  const ModelConfig none =
      ModelConfig::from_json(ParsedJson{{"model_type", "moondream"}}, text.config().source());
  ConfigReader moe(section ? *section : none, "moondream");
  MoonExperts experts{moe.number("start_layer", 4), {}};
  StackedExperts& stacks = experts.stacks;
  stacks.hidden = hidden;
  stacks.width = moe.size("expert_inner_dim", 1024);
  stacks.experts =
      read_experts(moe, tree, "num_experts|n_experts", 64, "experts_per_token|n_experts_per_tok", 8);
  stacks.path = "mlp", stacks.gate_up = "fc1.weight", stacks.down = "fc2.weight";
  return experts;
}

Module moon_attention(const HeadAttention& a, bool scaled) {
  Module module = attention(a);
  if (!scaled) return module;
  const Quantity wide = (a.heads + Quantity(2) * a.kv_heads) * a.head_dim;
  for (const char* name : {"tau.wq", "tau.wv"})
    module.tensors.push_back(parameter(name, {a.heads, wide}, Role::attention_gate, Part::attention));
  module.tensors.push_back(parameter("tau.alpha", {a.heads}, Role::attention_gate, Part::attention));
  return module;
}

Module moon_mixture(const MoonExperts& experts) {
  Module module = stacked_experts(experts.stacks);
  add_router(module, "router", experts.stacks.hidden, experts.stacks.experts.count, true);
  return module;
}

Quantity add_moon_text(const ModelConfig& config, ModuleTree& tree, bool third) {
  MoonSection text(config, tree, "text");
  Decoder d;
  d.vocabulary = text->size("vocab_size", 51200);
  d.hidden = text->size("dim", 2048);
  d.intermediate = text->size("ff_dim", 8192);
  d.layers = read_layers(*text, "n_layers", 24);
  d.heads = text->size("n_heads", 32);
  d.kv_heads = text->size("n_kv_heads", 32);
  d.head_dim = text->quotient(d.hidden, d.heads, "dim / n_heads");
  d.tied = false;
  note_sizes(tree, d);
  HeadAttention a = d.attention();
  a.path = "attn", a.fused = "qkv", a.o = "proj", a.qkv_bias = a.output_bias = true;
  std::optional<MoonExperts> experts;
  if (third) experts = read_moon_experts(*text, tree, d.hidden);
  const Module dense =
      plain_mlp({.hidden = d.hidden, .intermediate = d.intermediate, .up = "fc1", .down = "fc2"});
  const auto sparse = [&](std::uint64_t i) { return experts && i >= experts->from; };
  std::vector<Module> groups = group_layers(
      "model.text.blocks.{layer}", d.layers,
      [&](std::uint64_t i) { return !third      ? "layers"
                                    : sparse(i) ? "MoE layers"
                                                : "dense layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, "ln", d.hidden, Role::input_norm, true);
        layer.children = {moon_attention(a, third), sparse(i) ? moon_mixture(*experts) : dense};
      });
  Module table = embedding("model.text", d.vocabulary, d.hidden);
  table.tensors.front().name = "wte";  // a bare table
  tree.modules.push_back(std::move(table));
  for (Module& group : groups) tree.modules.push_back(std::move(group));
  tree.modules.push_back(norm("model.text.post_ln", d.hidden, Role::final_norm, true));
  tree.modules.push_back(output_head("model.text.lm_head", d.vocabulary, d.hidden, false, "", true));
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  return d.hidden;
}

// What is seen of the whole image and of its pieces stands side by side before the projector.
void add_moon_vision(const ModelConfig& config, ModuleTree& tree, const Quantity& text_hidden) {
  MoonSection vision(config, tree, "vision");
  const Quantity width = vision->size("enc_dim", 1152), patch = vision->size("enc_patch_size", 14);
  const Quantity side("crop_size / enc_patch_size", vision->size("crop_size", 378).value() / patch.value());
  vision->require(side.value() > 0, "crop_size is less than a patch");
  Module tower{"model.vision", "vision tower (ViT)", {}, {}, {}};
  Tower(tower, Part::vision)
      .matrix("patch_emb", patch * patch * vision->size("in_channels", 3), width, true)
      .tensor("pos_emb", {1, side * side, width})
      .norm("post_ln", width, true);
  EncoderBlock block{width, vision->size("enc_ff_dim", 4304)};
  block.norm1 = "ln1", block.norm2 = "ln2", block.qkv = "attn.qkv", block.o = "attn.proj";
  tower.children = {
      encoder_blocks("blocks.{layer}", read_layers(*vision, "enc_n_layers", 27), block, Part::vision)};
  add_tower(tree, std::move(tower));
  const Quantity between = vision->size("proj_inner_dim", 8192);
  Module projector{"model.vision.proj_mlp", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("fc1", Quantity(2) * width, between, true)
      .matrix("fc2", between, vision->size("proj_out_dim", text_hidden), true);
  add_tower(tree, std::move(projector));
}

void add_moon_region(const ModelConfig& config, ModuleTree& tree) {
  MoonSection region(config, tree, "region");
  const Quantity hidden = region->size("dim", 2048), between = region->size("inner_dim", 8192);
  Module module{"model.region", "places into vectors, and back", {}, {}, {}};
  Tower tower(module, Part::projector);
  struct Place {
    std::string name;
    std::uint64_t values, features, out;
  };
  for (const Place& place : {Place{"coord", 1, 256, 1024}, Place{"size", 2, 512, 2048}}) {
    const Quantity features = region->size(place.name + "_feat_dim", place.features);
    const Quantity half(place.name + "_feat_dim / 2", features.value() / 2);
    tower.matrix(place.name + "_encoder", features, hidden, true)
        .matrix(place.name + "_decoder.fc1", hidden, between, true)
        .matrix(place.name + "_decoder.fc2", between, region->size(place.name + "_out_dim", place.out), true)
        .tensor(place.name + "_features", {place.values, half});
  }
  add_tower(tree, std::move(module));
}

void describe_moondream2(ConfigReader& config, ModuleTree& tree) {
  const Quantity hidden = add_moon_text(config.config(), tree, false);
  add_moon_vision(config.config(), tree, hidden);
  add_moon_region(config.config(), tree);
}

void describe_moondream3(ConfigReader& config, ModuleTree& tree) {
  const Quantity hidden = add_moon_text(config.config(), tree, true);
  add_moon_vision(config.config(), tree, hidden);
  tree.not_counted.push_back(
      {"what turns places into vectors and back (model.region): its tensors are not described",
       std::nullopt});
}

void describe_moondream(ConfigReader& config, ModuleTree& tree) {
  const bool third = config.config().model_type() == "moondream3" ||
                     config.config().architecture() == "Moondream3ForCausalLM";
  third ? describe_moondream3(config, tree) : describe_moondream2(config, tree);
}

constexpr std::string_view kMoondreamArchitectures[] = {"HfMoondream", "Moondream3ForCausalLM"},
                           kMoondreamTypes[] = {"moondream1", "moondream3"};

}  // namespace

const Family kMoondream = {"moondream", "Moondream 2, 3",  kMoondreamArchitectures, kMoondreamTypes,
                           {},          describe_moondream};

}  // namespace assay::families
