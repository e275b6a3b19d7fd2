// What speaks in Qwen3-Omni (arXiv:2509.17765, §2.3): the talker, a mixture over codes of sound that reads the thinker's hidden
// states; what guesses the other codes of a frame; and code2wav, which makes samples of them. Source: transformers 5.23,
// modeling_qwen3_omni_moe.py.
#include "core/model/families/omni.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/small_decoders.h"
#include "core/model/families/sound_convolutions.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr std::uint64_t kMostStretches = 60;

// --- the talker ------------------------------------------------------------------------------------------------------

void add_talker_experts(Module& layer, ConfigReader& text, const Quantity& hidden) {
  const Quantity experts = text.size("num_experts|num_local_experts", 128);
  const std::uint64_t active = text.size("num_experts_per_tok", 8).value();
  text.require(active <= experts.value(), "num_experts_per_tok exceeds num_experts");
  Tower tower(layer, Part::audio);
  tower.matrix("mlp.gate", hidden, experts, false).matrix("mlp.shared_expert_gate", hidden, 1, false);
  add_small_mlp(tower, "mlp.shared_expert", hidden, text.size("shared_expert_intermediate_size", 768));
  Module routed{"", "experts", {}, {}, {}};
  routed.repeat = {Repeat::Over::experts, all_layers(experts), experts, active};
  Tower one(routed, Part::audio);
  add_small_mlp(one, "mlp.experts.{expert}", hidden, text.size("moe_intermediate_size", 384));
  layer.children.push_back(std::move(routed));
}

// Every layer has experts, whatever decoder_sparse_step and mlp_only_layers say.
Module talking_layers(ConfigReader& text, const Decoder& d) {
  const bool bias = text.flag("attention_bias", false);
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  Tower tower(layer, Part::audio);
  add_small_norms(tower, d.hidden);
  add_small_attention(tower, d, {.qkv_bias = bias, .output_bias = bias, .head_norms = true});
  add_talker_experts(layer, text, d.hidden);
  return layer;
}

Module omni3_talker(ConfigReader& config, ConfigReader& text) {
  const Decoder d = read_small_decoder(
      text,
      {.vocabulary = 0, .hidden = 1024, .intermediate = 2048, .layers = 20, .heads = 16, .kv_heads = 2});
  const Quantity codes = text.size("vocab_size", 3072), read = config.size("thinker_hidden_size", 2048);
  Module speaks{"talker", "talker", {}, {}, {}};
  Tower tower(speaks, Part::audio);
  tower.tensor("model.codec_embedding.weight", {codes, d.hidden})
      .norm("model.norm", d.hidden, false)
      .matrix("codec_head", d.hidden, codes, false);
  for (const std::string reader : {"text_projection", "hidden_projection"})
    tower.matrix(reader + ".linear_fc1", read, d.intermediate, true)
        .matrix(reader + ".linear_fc2", d.intermediate, d.hidden, true);
  speaks.children = {talking_layers(text, d)};
  return speaks;
}

// A table and a head for each code of a frame but the first.
Module code_predictor(ConfigReader& config) {
  const Decoder d = read_small_decoder(config, {.vocabulary = 0,
                                                .hidden = 1024,
                                                .intermediate = 3072,
                                                .layers = 5,
                                                .heads = 16,
                                                .kv_heads = 8,
                                                .head_dim = 128});
  const Quantity codes = config.size("vocab_size", 2048);
  const std::uint64_t groups = config.size("num_code_groups", 32).value();
  const Quantity others("num_code_groups - 1", groups - 1);
  SmallLayers of = read_small_layers(config);
  of.mlp_bias = false, of.head_norms = true;
  Module guesses{"talker.code_predictor", "what guesses the codes of a frame", {}, {}, {}};
  Tower(guesses, Part::audio).norm("model.norm", d.hidden, false);
  Module tables = layers("model.codec_embedding.{layer}", "tables of codes", all_layers(others));
  Tower(tables, Part::audio).tensor("weight", {codes, d.hidden});
  Module heads = layers("lm_head.{layer}", "heads", all_layers(others));
  Tower(heads, Part::audio).tensor("weight", {codes, d.hidden});
  guesses.children = {small_llama(d, "model.layers.{layer}", of)};
  if (groups > 1) {
    guesses.children.push_back(std::move(tables));
    guesses.children.push_back(std::move(heads));
  }
  return guesses;
}

// --- code2wav --------------------------------------------------------------------------------------------------------

void add_wrapped_conv(Tower& tower, const std::string& name, const std::vector<Quantity>& shape,
                      const Quantity& out) {
  add_sound_convolution(tower, name + ".conv", shape, out);
}

// An activation whose waves are learnt, one a channel.
void add_snake(Tower& tower, const std::string& name, const Quantity& width) {
  tower.tensor(name + ".alpha", {width}).tensor(name + ".beta", {width});
}

Module before_samples(ConfigReader& config, const Decoder& d) {
  const bool bias = config.flag("attention_bias", false);
  Module blocks = layers("pre_transformer.layers.{layer}", "layers", all_layers(d.layers));
  Tower layer(blocks, Part::audio);
  add_small_norms(layer, d.hidden);
  add_small_attention(layer, d, {.qkv_bias = bias, .output_bias = bias});
  add_small_mlp(layer, "mlp", d.hidden, d.intermediate);
  layer.tensor("self_attn_layer_scale.scale", {d.hidden}).tensor("mlp_layer_scale.scale", {d.hidden});
  return blocks;
}

// Stretched once as a whole, then a ConvNeXt's block.
void add_wave_upsampling(Tower& tower, const std::string& at, const Quantity& hidden, std::uint64_t factor) {
  add_wrapped_conv(tower, at + ".0", {hidden, hidden, Quantity(factor)}, hidden);
  add_wrapped_conv(tower, at + ".1.dwconv", {hidden, 1, 7}, hidden);
  tower.norm(at + ".1.norm", hidden, true)
      .matrix(at + ".1.pwconv1", hidden, Quantity(4) * hidden, true)
      .matrix(at + ".1.pwconv2", Quantity(4) * hidden, hidden, true)
      .tensor(at + ".1.gamma", {hidden});
}

// A stretch that halves the width, and three pairs of convolutions.
void add_wave_stretch(Tower& tower, const std::string& block, const Quantity& in, const Quantity& out,
                      std::uint64_t rate) {
  add_snake(tower, block + "0", in);
  add_wrapped_conv(tower, block + "1", {in, out, Quantity(2) * Quantity(rate)}, out);
  for (int unit = 2; unit < 5; ++unit) {
    const std::string at = block + std::to_string(unit);
    for (const auto& [number, kernel] : {std::pair("1", 7), std::pair("2", 1)}) {
      add_snake(tower, at + ".act" + number, out);
      add_wrapped_conv(tower, at + ".conv" + number, {out, out, Quantity(static_cast<std::uint64_t>(kernel))},
                       out);
    }
  }
}

Module code2wav(ConfigReader& config) {
  using Numbers = std::vector<std::uint64_t>;
  const Decoder d = read_small_decoder(
      config,
      {.vocabulary = 0, .hidden = 1024, .intermediate = 3072, .layers = 8, .heads = 16, .kv_heads = 16});
  const Numbers rates = config.numbers("upsample_rates").value_or(Numbers{8, 5, 4, 3});
  const Numbers ratios = config.numbers("upsampling_ratios").value_or(Numbers{2, 2});
  const std::uint64_t first = config.size("decoder_dim", 1536).value();
  config.require(rates.size() < kMostStretches && (first >> rates.size()) > 0,
                 "upsample_rates has more entries than decoder_dim can be halved");
  config.require(ratios.size() < kMostStretches, "upsampling_ratios has too many entries");
  Module whole{"code2wav", "codes to samples", {}, {}, {}};
  Tower tower(whole, Part::audio);
  const Quantity codes = config.size("codebook_size", 2048) * config.size("num_quantizers", 16);
  tower.tensor("code_embedding.weight", {codes, d.hidden}).norm("pre_transformer.norm", d.hidden, false);
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    config.require(ratios[i] > 0, "upsampling_ratios holds a 0");
    add_wave_upsampling(tower, "upsample." + std::to_string(i), d.hidden, ratios[i]);
  }
  add_wrapped_conv(tower, "decoder.0", {Quantity(first), d.hidden, 7}, Quantity(first));
  for (std::size_t i = 0; i < rates.size(); ++i) {
    config.require(rates[i] > 0, "upsample_rates holds a 0");
    add_wave_stretch(tower, "decoder." + std::to_string(i + 1) + ".block.", Quantity(first >> i),
                     Quantity(first >> (i + 1)), rates[i]);
  }
  const Quantity last(first >> rates.size());
  add_snake(tower, "decoder." + std::to_string(rates.size() + 1), last);
  add_wrapped_conv(tower, "decoder." + std::to_string(rates.size() + 2), {1, last, 7}, 1);
  whole.children = {before_samples(config, d)};
  return whole;
}

}  // namespace

// No token of text meets what speaks: it is told as towers.
void add_omni3_talker(ConfigReader& whole, ModuleTree& tree) {
  if (!whole.flag("enable_audio_output", true)) return;
  TowerConfig speaks(whole, tree, "talker_config"), sounds(whole, tree, "code2wav_config");
  if (!speaks || !sounds) {
    tree.not_counted.push_back({"what speaks: this config does not describe it", std::nullopt});
    return;
  }
  TowerConfig text(*speaks, tree, "text_config"), predictor(*speaks, tree, "code_predictor_config");
  whole.require(text && predictor, "talker_config lacks text_config or code_predictor_config");
  add_tower(tree, omni3_talker(*speaks, *text));
  add_tower(tree, code_predictor(*predictor));
  add_tower(tree, code2wav(*sounds));
  tree.not_counted.push_back({"what the talker caches", std::nullopt});
}

}  // namespace assay::families
