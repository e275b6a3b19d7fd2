// Gemma 4: windows in five layers of six; the layers that see all have wider heads, may take their keys for values, and
// the last ones may read the cache of earlier ones. 26B-A4B has experts beside each dense MLP; E2B and E4B an embedding
// for each layer, and ears.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/model/families/all.h"
#include "core/model/families/gemma4.h"
#include "core/model/families/gemma_blocks.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"
#include "core/system/text.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Gemma4Layers {
  HeadAttention windowed, full;
  std::vector<std::uint64_t> windowed_layers;
  std::uint64_t first_shared = 0;  // from here on layers have no keys and values of their own
  bool wide_mlp = false;           // twice as wide in those
  bool is_full(std::uint64_t i) const {
    return !std::binary_search(windowed_layers.begin(), windowed_layers.end(), i);
  }
  bool shares(std::uint64_t i) const { return i >= first_shared; }
};

// As transformers 5.24 saves a config: what differs by layer, {"05": {"head_dim": 512, "num_key_value_heads": 2}}, in place of
// the global_ keys. One of the layers that see all, as the others must have it, and nothing of those with windows.
HeadAttention saved_by_layer(ConfigReader& config, const ParsedJson& saved, const Decoder& d,
                             const Gemma4Layers& l) {
  config.require(saved.is_object(), "per_layer_config is no object");
  std::optional<HeadAttention> found;
  std::size_t told = 0;
  for (const auto& [index, own] : saved.items()) {
    const auto layer = parse_u64(index);
    config.require(layer && *layer < d.layers.value() && own.is_object(),
                   "per_layer_config has a member that is no layer: " + index);
    HeadAttention a = l.windowed;
    for (const auto& [key, value] : own.items()) {
      config.require(key == "head_dim" || key == "num_key_value_heads",
                     "per_layer_config." + index + "." + key + " is not described");
      const double size = config.to_real(value, "per_layer_config", 1, 1e9);
      (key == "head_dim" ? a.head_dim : a.kv_heads) = Quantity(key, static_cast<std::uint64_t>(size));
    }
    config.require(l.is_full(*layer), "per_layer_config speaks of layer " + index + ", which has a window");
    config.require(!found || (found->head_dim.value() == a.head_dim.value() &&
                              found->kv_heads.value() == a.kv_heads.value()),
                   "per_layer_config gives layers that see all different heads");
    found = a;
    ++told;
  }
  const std::size_t full = d.layers.value() - l.windowed_layers.size();
  config.require(told == 0 || told == full, "per_layer_config tells of some of the layers that see all");
  return found.value_or(l.windowed);
}

Gemma4Layers read_gemma4_layers(ConfigReader& config, const Decoder& d, const Gemma4Kin& kin) {
  const bool assistant = kin.assistant;
  Gemma4Layers l;
  l.windowed = d.attention();
  l.windowed.qkv_bias = l.windowed.output_bias = config.flag("attention_bias", false);
  l.windowed.qk_norm = QkNorm::per_head;
  const std::uint64_t last = d.layers.value() - 1;
  l.windowed_layers = windowed_layers(config, d.layers, [](std::uint64_t i) { return (i + 1) % 6 != 0; });
  if (!l.windowed_layers.empty() && l.windowed_layers.back() == last) l.windowed_layers.pop_back();
  l.full = l.windowed;
  const bool keys_are_values = kin.diffuses || config.flag("attention_k_eq_v", false);
  const ParsedJson& keys = config.config().text();
  if (const auto saved = keys.find("per_layer_config"); saved != keys.end() && !saved->is_null()) {
    l.full = saved_by_layer(config, *saved, d, l);
  } else {
    l.full.head_dim = config.size("global_head_dim", 512);
    const auto kv = keys_are_values ? config.optional_size("num_global_key_value_heads") : std::nullopt;
    if (kv) l.full.kv_heads = *kv;
  }
  l.full.has_v = !keys_are_values;
  config.require_divides(l.full.kv_heads, l.full.heads);
  const std::uint64_t shared = config.number("num_kv_shared_layers", 0);
  if (assistant)
    config.require(shared == 0 || shared == d.layers.value(),
                   "num_kv_shared_layers is not of all layers, and an assistant's have no keys of their own");
  else
    config.require(shared < d.layers.value(), "num_kv_shared_layers leaves no layer with keys of its own");
  l.first_shared = assistant ? 0 : d.layers.value() - shared;
  l.wide_mlp = config.flag("use_double_wide_mlp", false);
  return l;
}

// The dense MLP and the experts see the same residual, and their sum is normed: x += norm(norm_1(mlp) + norm_2(moe)).
void add_experts(Module& layer, const Quantity& hidden, const Experts& experts, const Quantity& width) {
  add_norm(layer, "post_feedforward_layernorm_1", hidden, Role::post_feedforward_norm);
  add_norm(layer, "post_feedforward_layernorm_2", hidden, Role::post_feedforward_norm);
  add_norm(layer, "pre_feedforward_layernorm_2", hidden, Role::pre_feedforward_norm);
  Module router{"router", std::string(title(Part::router)), {}, {}, {}};
  add_router(router, "proj", hidden, experts.count);
  router.tensors.push_back(parameter("scale", {hidden}, Role::router_scale, Part::router));
  router.tensors.push_back(parameter("per_expert_scale", {experts.count}, Role::router_scale, Part::router));
  layer.children.push_back(std::move(router));
  layer.children.push_back(stacked_experts({hidden, width, experts}));
}

void add_layer(Module& layer, const Decoder& d, const Gemma4Layers& l, std::uint64_t i,
               const std::optional<Quantity>& per_layer) {
  for (const auto& [name, role] : {std::pair{"input_layernorm", Role::input_norm},
                                   {"post_attention_layernorm", Role::post_attention_norm},
                                   {"pre_feedforward_layernorm", Role::pre_feedforward_norm},
                                   {"post_feedforward_layernorm", Role::post_feedforward_norm}})
    add_norm(layer, name, d.hidden, role);
  layer.tensors.push_back(parameter("layer_scalar", {1}, Role::layer_scale, Part::norm));
  HeadAttention a = l.is_full(i) ? l.full : l.windowed;
  if (l.shares(i)) a.has_k = a.has_v = false;
  GatedMlp mlp = d.mlp();
  if (l.wide_mlp && l.shares(i)) mlp.intermediate = Quantity(2) * d.intermediate;
  layer.children = {attention(a), gated_mlp(mlp)};
  if (per_layer) layer.children.push_back(per_layer_step(d.hidden, *per_layer));
}

void add_caches(ModuleTree& tree, const Decoder& d, const Gemma4Layers& l, std::uint64_t window) {
  for (const bool full : {true, false}) {
    for (const bool shares : {false, true}) {
      const auto where = layers_where(
          d.layers, [&](std::uint64_t i) { return l.is_full(i) == full && l.shares(i) == shares; });
      if (where.empty()) continue;
      AttentionGeometry g = geometry(full ? l.full : l.windowed, where, full ? 0 : window);
      g.cached = !shares;
      tree.attention.push_back(std::move(g));
    }
  }
}

// A token's input of each layer's own; none where the class or the config has none.
std::optional<Quantity> per_layer_width(ConfigReader& config, const Gemma4Kin& kin) {
  if (kin.per_layer == 0) return std::nullopt;
  const std::uint64_t width =
      config.optional_number("hidden_size_per_layer_input", kin.per_layer).value_or(0);
  return width > 0 ? std::optional(Quantity("hidden_size_per_layer_input", width)) : std::nullopt;
}

// A matrix that may clip what goes in and out, its bounds stored beside it.
void add_clipped(Tower& tower, Module& module, const std::string& name, const Quantity& in,
                 const Quantity& out, bool clips) {
  tower.matrix(name + ".linear", in, out, false);
  if (!clips) return;
  for (const char* bound : {"input_min", "input_max", "output_min", "output_max"})
    add_buffer(module, name + "." + bound, {});
}

Module audio_layers(ConfigReader& audio, const Quantity& hidden) {
  Module layer = layers("layers.{layer}", "blocks", all_layers(read_layers(audio, "num_hidden_layers", 12)));
  Tower tower(layer, Part::audio);
  const bool clips = audio.flag("use_clipped_linears", true);
  const auto clipped = [&](const std::string& name, const Quantity& in, const Quantity& out) {
    add_clipped(tower, layer, name, in, out, clips);
  };
  const Quantity head = audio.quotient(hidden, audio.size("num_attention_heads", 8), "head_dim");
  for (const std::string half : {"feed_forward1", "feed_forward2"}) {
    clipped(half + ".ffw_layer_1", hidden, Quantity(4) * hidden);
    clipped(half + ".ffw_layer_2", Quantity(4) * hidden, hidden);
    tower.norm(half + ".pre_layer_norm", hidden, false).norm(half + ".post_layer_norm", hidden, false);
  }
  for (const char* name : {"q_proj", "k_proj", "v_proj", "post"})
    clipped(std::string("self_attn.") + name, hidden, hidden);
  tower.matrix("self_attn.relative_k_proj", hidden, hidden, false).tensor("self_attn.per_dim_scale", {head});
  clipped("lconv1d.linear_start", hidden, Quantity(2) * hidden);
  clipped("lconv1d.linear_end", hidden, hidden);
  tower.tensor("lconv1d.depthwise_conv1d.weight", {hidden, 1, audio.size("conv_kernel_size", 5)});
  for (const char* name :
       {"lconv1d.pre_layer_norm", "lconv1d.conv_norm", "norm_pre_attn", "norm_post_attn", "norm_out"})
    tower.norm(name, hidden, false);
  return layer;
}

// A conformer over spectrogram frames that two strided convolutions thin out.
void add_audio(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig audio(config, tree, "audio_config");
  if (!audio) return;
  const Quantity hidden = audio->size("hidden_size", 1024), out = audio->size("output_proj_dims", 1536);
  const auto channels =
      audio->numbers("subsampling_conv_channels").value_or(std::vector<std::uint64_t>{128, 32});
  config.require(channels.size() == 2 && channels[0] >= 4 && channels[1] > 0,
                 "audio_config.subsampling_conv_channels is not a list of two sizes");
  const Quantity first = channels[0], second = channels[1];
  Module tower{"model.audio_tower", "audio tower", {}, {}, {}};
  Tower(tower, Part::audio)
      .tensor("subsample_conv_projection.layer0.conv.weight", {first, 1, 3, 3})
      .norm("subsample_conv_projection.layer0.norm", first, false)
      .tensor("subsample_conv_projection.layer1.conv.weight", {second, first, 3, 3})
      .norm("subsample_conv_projection.layer1.norm", second, false)
      .matrix("subsample_conv_projection.input_proj_linear", Quantity(channels[0] / 4) * second, hidden,
              false)
      .matrix("output_proj", hidden, out, true);
  tower.children = {audio_layers(*audio, hidden)};
  Module projector{"model.embed_audio", "projector of audio", {}, {}, {}};
  Tower(projector, Part::projector).matrix("embedding_projection", out, text_hidden, false);
  tree.towers.push_back(std::move(tower));
  tree.towers.push_back(std::move(projector));
}

void describe_gemma4(ConfigReader& config, ModuleTree& tree) {
  describe_gemma4_kin(config, tree, {.per_layer = 256, .window = 512, .add_towers = add_gemma4_towers});
}

constexpr std::string_view kGemma4Architectures[] = {"Gemma4ForConditionalGeneration", "Gemma4ForCausalLM"};
constexpr std::string_view kGemma4Types[] = {"gemma4", "gemma4_text"};

}  // namespace

void describe_gemma4_kin(ConfigReader& config, ModuleTree& tree, const Gemma4Kin& kin) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 262144,
                                  .hidden = 2304,
                                  .intermediate = 9216,
                                  .layers = 30,
                                  .heads = 8,
                                  .kv_heads = 4,
                                  .head_dim = 256,
                                  .tied = true});
  const Gemma4Layers l = read_gemma4_layers(config, d, kin);
  const auto per_layer = per_layer_width(config, kin);
  const bool moe = kin.diffuses || config.flag("enable_moe_block", false);
  const Experts experts =
      moe ? read_experts(config, tree, "num_experts", 128, "top_k_experts|num_experts_per_tok", 8)
          : Experts{};
  const Quantity expert_width = moe ? config.size("moe_intermediate_size") : Quantity(1);

  const std::string usual = is_nested(config) && !kin.assistant ? "model.language_model." : "model.",
                    prefix = kin.prefix.empty() ? usual : std::string(kin.prefix);
  const auto groups = group_layers(
      prefix + "layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return std::string(l.is_full(i) ? "layers that see all" : "layers with a window") +
               (l.shares(i) ? ", cache of others" : "");
      },
      [&](Module& layer, std::uint64_t i) {
        add_layer(layer, d, l, i, per_layer);
        if (moe) add_experts(layer, d.hidden, experts, expert_width);
      });
  add_frame(tree, d, groups, frame_under(prefix));
  if (per_layer)
    tree.modules.insert(tree.modules.begin() + 1,
                        per_layer_inputs(prefix.substr(0, prefix.size() - 1), config, d, *per_layer));
  add_caches(tree, d, l, config.size("sliding_window", kin.window).value());
  kin.add_towers(config, tree, d.hidden);
}

void add_gemma4_towers(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  if (TowerConfig vision(config, tree, "vision_config"); vision) {
    const Quantity hidden = vision->size("hidden_size", 768), heads = vision->size("num_attention_heads", 12);
    const Quantity head_dim = vision->size("head_dim", 64), patch = vision->size("patch_size", 16);
    const Quantity kv_heads = vision->size("num_key_value_heads", heads);
    const Quantity width = vision->size("intermediate_size", 3072);
    const bool clips = vision->flag("use_clipped_linears", false);
    Module tower{"model.vision_tower", "vision tower", {}, {}, {}};
    Tower start(tower, Part::vision);
    start.matrix("patch_embedder.input_proj", Quantity(3) * patch * patch, hidden, false)
        .tensor("patch_embedder.position_embedding_table",
                {2, vision->size("position_embedding_size", 10240), hidden});
    if (vision->flag("standardize", false)) start.tensor("std_bias", {hidden}).tensor("std_scale", {hidden});
    Module layer =
        layers("encoder.layers.{layer}", "blocks", all_layers(read_layers(*vision, "num_hidden_layers", 16)));
    Tower block(layer, Part::vision);
    add_clipped(block, layer, "self_attn.q_proj", hidden, heads * head_dim, clips);
    add_clipped(block, layer, "self_attn.k_proj", hidden, kv_heads * head_dim, clips);
    add_clipped(block, layer, "self_attn.v_proj", hidden, kv_heads * head_dim, clips);
    add_clipped(block, layer, "self_attn.o_proj", heads * head_dim, hidden, clips);
    block.norm("self_attn.q_norm", head_dim, false).norm("self_attn.k_norm", head_dim, false);
    add_clipped(block, layer, "mlp.gate_proj", hidden, width, clips);
    add_clipped(block, layer, "mlp.up_proj", hidden, width, clips);
    add_clipped(block, layer, "mlp.down_proj", width, hidden, clips);
    for (const char* name : {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                             "post_feedforward_layernorm"})
      block.norm(name, hidden, false);
    tower.children = {std::move(layer)};
    Module projector{"model.embed_vision", "projector", {}, {}, {}};
    Tower(projector, Part::projector).matrix("embedding_projection", hidden, text_hidden, false);
    tree.towers.push_back(std::move(tower));
    tree.towers.push_back(std::move(projector));
  }
  add_audio(config, tree, text_hidden);
}

const Family kGemma4 = {"gemma4", "Gemma 4",       kGemma4Architectures, kGemma4Types,
                        {},       describe_gemma4, forward_gemma4};

}  // namespace assay::families
