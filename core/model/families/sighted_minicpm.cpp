// MiniCPM-V 2.0 to 4.5 and MiniCPM-o 2.6 and 4.5, as OpenBMB publishes them: one class for all, whose config names a version
// and has the language model's keys beside its own. A SigLIP (vpm), and queries that were learnt attend to what it sees
// (resampler); MiniCPM-o hears through a Whisper encoder (apm). Names as vLLM 0.33 loads them (minicpmv.py, minicpmo.py).
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/model/families/encoder_towers.h"
#include "core/model/families/hearing.h"
#include "core/model/families/minicpm_speech.h"
#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

struct Version {
  std::string_view name, text;  // "2.6", the family of its language model
};
constexpr std::string_view kTimm = "2.0";  // looks through a ViT of timm's
constexpr std::array<Version, 5> kOfMiniCpmV = {
    {{kTimm, "minicpm"}, {"2.5", "llama"}, {"2.6", "qwen2"}, {"4.0", "llama"}, {"4.5", "qwen3"}}};
constexpr std::array<Version, 2> kOfMiniCpmO = {{{"2.6", "qwen2"}, {"4.5", "qwen3"}}};

// A number or a text; where there is none, as the first two releases were told apart.
std::string version_of(const ModelConfig& config, std::string_view unnamed) {
  const ParsedJson& keys = config.document();
  const auto version = keys.find("version");
  if (version == keys.end() || version->is_null()) return std::string(unnamed);
  if (version->is_number()) return fmt::format("{:.1f}", version->get<double>());
  return version->is_string() ? version->get<std::string>() : std::string();
}

std::string_view unnamed_version(const ModelConfig& config) {
  const auto is = [&](const char* key, std::uint64_t value) {
    const auto found = config.document().find(key);
    return found != config.document().end() && found->is_number() && *found == value;
  };
  return is("hidden_size", 2304) && is("query_num", 64) ? kTimm : "2.5";
}

std::string_view family_of_version(std::span<const Version> versions, const std::string& name) {
  for (const Version& version : versions) {
    if (version.name == name) return version.text;
  }
  return {};
}

// One layer of attention: the queries ask, a matrix brings the tower's width to theirs.
Module resampler(ConfigReader& document, const Quantity& seen, const Quantity& width) {
  Module module{"resampler", "projector (resampler)", {}, {}, {}};
  Tower tower(module, Part::projector);
  tower.tensor("query", {document.size("query_num", 64), width});
  if (seen.value() != width.value()) tower.matrix("kv_proj", seen, width, false);
  tower.tensor("attn.in_proj_weight", {Quantity(3) * width, width})
      .tensor("attn.in_proj_bias", {Quantity(3) * width})
      .matrix("attn.out_proj", width, width, true)
      .norm("ln_q", width, true)
      .norm("ln_kv", width, true)
      .norm("ln_post", width, true)
      .tensor("proj", {width, width});
  return module;
}

// Blocks of the tower: the last one may have been taken away before training.
Quantity kept_blocks(ConfigReader& document, const Quantity& blocks) {
  if (!document.flag("drop_vision_last_layer", true)) return blocks;
  document.require(blocks.value() > 1, "drop_vision_last_layer leaves no layer of the tower");
  return {"num_hidden_layers − 1", blocks.value() - 1};
}

// The SigLIP of 27 blocks as timm has it, over images of 384 pixels: vit_so400m_patch14_siglip_384 without its pooling.
void add_timm_siglip(ConfigReader& document, ModuleTree& tree) {
  const Quantity hidden("width of so400m", 1152), patch("patch of so400m", 14), side("384 / 14", 27);
  Module tower{"vpm", "vision tower (SigLIP of timm)", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("pos_embed", {1, side * side, hidden})
      .tensor("patch_embed.proj.weight", {hidden, 3, patch, patch})
      .tensor("patch_embed.proj.bias", {hidden})
      .norm("norm", hidden, true);
  EncoderBlock block{hidden, {"width of its MLPs", 4304}};
  block.qkv = "attn.qkv", block.o = "attn.proj";
  tower.children = {
      encoder_blocks("blocks.{layer}", kept_blocks(document, {"blocks", 27}), block, Part::vision)};
  add_tower(tree, std::move(tower));
  Module projector = resampler(document, hidden, text_width(tree));
  // A table of sines, which is stored as a parameter.
  Tower(projector, Part::projector).tensor("pos_embed", {document.size("query_num", 64), text_width(tree)});
  add_tower(tree, std::move(projector));
}

void add_seeing_minicpm(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  document.require(static_cast<bool>(vision), "vision_config is missing");
  constexpr SiglipClass kDefaults = {
      .hidden = 1152, .patch = 14, .image = 980, .intermediate = 4304, .layers = 27};
  Module tower = siglip_tower(*vision, "vpm", kDefaults);
  for (Module& child : tower.children) {
    if (child.repeat.over != Repeat::Over::layers) continue;
    Module kept = layers(child.path, child.title, all_layers(kept_blocks(document, child.repeat.count)));
    kept.tensors = std::move(child.tensors);
    child = std::move(kept);
  }
  add_tower(tree, std::move(tower));
  add_tower(tree, resampler(document, vision->size("hidden_size", kDefaults.hidden), text_width(tree)));
}

// Whisper's encoder, whose sizes have to be told; averages over time come between it and the matrices.
void add_hearing_minicpm(ConfigReader& document, ModuleTree& tree) {
  TowerConfig audio(document, tree, "audio_config");
  document.require(static_cast<bool>(audio), "audio_config is missing, and init_audio says that it hears");
  for (const char* key : {"d_model", "encoder_ffn_dim", "encoder_layers"}) audio->size(key);
  add_tower(tree, whisper_encoder(*audio, "apm", {.bins = 80}));
  const Quantity wide = whisper_wide(*audio);
  const Quantity in("encoder_ffn_dim / 4", wide.value() / 4);
  Module projector{"audio_projection_layer", "projector of sound", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("linear1", in, text_width(tree), true)
      .matrix("linear2", text_width(tree), text_width(tree), true);
  add_tower(tree, std::move(projector));
}

}  // namespace

std::string_view minicpm_v_text(const ModelConfig& config) {
  return family_of_version(kOfMiniCpmV, version_of(config, unnamed_version(config)));
}

std::string_view minicpm_o_text(const ModelConfig& config) {
  return family_of_version(kOfMiniCpmO, version_of(config, "2.6"));
}

void add_minicpm_v_own(ConfigReader& document, ModuleTree& tree) {
  const ModelConfig& config = document.config();
  if (version_of(config, unnamed_version(config)) == kTimm) return add_timm_siglip(document, tree);
  add_seeing_minicpm(document, tree);
}

void add_minicpm_o(ConfigReader& document, ModuleTree& tree) {
  if (document.flag("init_vision", true)) add_seeing_minicpm(document, tree);
  if (document.flag("init_audio", true)) add_hearing_minicpm(document, tree);
  if (document.flag("init_tts", true))
    add_minicpm_speech(document, tree, version_of(document.config(), "2.6"));
}

}  // namespace assay::families
