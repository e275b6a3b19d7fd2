// Behind NVIDIA's RADIO: Nemotron 3 Omni (also with an encoder of sound), Nemotron Nano VL 2 and Llama Nemotron Nano VL as
// they are published. Eagle 2.5 and Llama Nemotron Embed VL have a SigLIP in its place.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/model/families/encoder_towers.h"
#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// A ViT whose patches are rows of a matrix, with a table of positions for the largest image.
struct Radio {
  Quantity hidden, intermediate, layers, patch, pixels;
  Quantity tokens, side;    // of classes and registers; positions of the largest image on a side
  std::uint64_t frames;     // that a matrix of their own takes together; 1: films have none
  std::uint64_t summaries;  // indices kept of the class tokens
  bool qkv_bias, scaled;    // scaled: a vector of factors behind each half of a block
};

// As transformers' RadioConfig has it.
Radio read_radio(ConfigReader& vision, std::uint64_t frames) {
  const Quantity hidden = vision.size("hidden_size", 1280), patch = vision.size("patch_size", 16);
  const auto widened = static_cast<double>(hidden.value()) * vision.real("mlp_ratio", 4, 0, 1024);
  vision.require(!vision.flag("use_swiglu_ffn", false),
                 "use_swiglu_ffn: gated MLPs of RADIO are not described");
  const auto summaries = vision.numbers("summary_idxs");
  return {hidden,
          {"hidden_size × mlp_ratio", static_cast<std::uint64_t>(widened)},
          read_layers(vision, "num_hidden_layers", 32),
          patch,
          vision.size("num_channels", 3) * patch * patch,
          vision.size("num_cls_tokens", 3) + vision.size("num_registers", 7),
          {"max_img_size / patch_size", vision.size("max_img_size", 2048).value() / patch.value()},
          frames,
          summaries ? summaries->size() : 2,
          vision.flag("qkv_bias", true),
          true};
}

struct RadioVit {
  std::string_view name;
  std::uint64_t hidden, layers, intermediate;
};
constexpr std::array<RadioVit, 5> kRadioVits = {{{"vit_small_patch16_224", 384, 12, 1536},
                                                 {"vit_base_patch16_224", 768, 12, 3072},
                                                 {"vit_large_patch16_224", 1024, 24, 4096},
                                                 {"vit_huge_patch16_224", 1280, 32, 5120},
                                                 {"vit_so400m_patch16_224", 1152, 27, 4304}}};

// Teachers by different names, and those of which a summary is kept.
struct Teachers {
  std::size_t names = 0, summaries = 0;
};
Teachers read_teachers(const ConfigReader& args) {
  const ParsedJson& keys = args.config().document();
  const auto list = keys.find("teachers");
  if (list == keys.end() || list->is_null()) return {};
  args.require(list->is_array(), "teachers is not a list");
  std::set<std::string> names;
  Teachers teachers;
  for (const ParsedJson& teacher : *list) {
    const auto name = teacher.is_object() ? teacher.find("name") : teacher.end();
    args.require(teacher.is_object() && name != teacher.end() && name->is_string(),
                 "teachers holds one without a name");
    names.insert(name->get<std::string>());
    const auto summary = teacher.find("use_summary");
    if (summary == teacher.end() || *summary != false) ++teachers.summaries;
  }
  teachers.names = names.size();
  return teachers;
}

// As RADIO's own code has it: under `args` what it was trained with, of which the model's name tells the sizes.
Radio read_own_radio(ConfigReader& vision, ConfigReader& args) {
  const std::string name = args.text("model", "");
  const auto vit = std::find_if(kRadioVits.begin(), kRadioVits.end(),
                                [&](const RadioVit& known) { return known.name == name; });
  args.require(vit != kRadioVits.end(), fmt::format("a RADIO of the model \"{}\" is not described", name));
  const Quantity patch = vision.size("patch_size", 16);
  const double side =
      std::round(args.real("cpe_max_size", 2048, 1, 1e6) / static_cast<double>(patch.value()));
  args.require(side >= 1, "cpe_max_size is less than a patch");
  const Teachers teachers = read_teachers(args);
  const std::uint64_t classes = args.flag("cls_token_per_teacher", false) ? teachers.names : 1;
  args.require(classes > 0, "cls_token_per_teacher is told, and no teachers are");
  std::uint64_t registers = 0;
  if (const auto multiple = args.optional_size("register_multiple"))
    registers = multiple->value() - classes % multiple->value();
  const Quantity frames = vision.size("video_temporal_patch_size", 1);
  vision.require(frames.value() == 1 || vision.flag("separate_video_embedder", true),
                 "separate_video_embedder is false: films without a matrix of their own are not described");
  return {{"hidden_size", vit->hidden},
          {"intermediate_size", vit->intermediate},
          {"num_hidden_layers", vit->layers},
          patch,
          Quantity(3) * patch * patch,
          {"class and register tokens", classes + registers},
          {"cpe_max_size / patch_size", static_cast<std::uint64_t>(side)},
          frames.value() > 1 ? frames.value() : 0,
          teachers.summaries,
          true,
          false};
}

Module radio_tower(const Radio& radio) {
  const std::string generator = "radio_model.model.patch_generator.";
  const Quantity& hidden = radio.hidden;
  Module tower{"vision_model", "vision tower (RADIO)", {}, {}, {}};
  Tower start(tower, Part::vision);
  start.tensor(generator + "cls_token.token", {radio.tokens, hidden})
      .tensor(generator + "pos_embed", {1, radio.side * radio.side, hidden})
      .matrix(generator + "embedder", radio.pixels, hidden, false);
  if (radio.frames > 0)
    start.matrix(generator + "video_embedder", Quantity(radio.frames) * radio.pixels, hidden, false);
  if (radio.summaries > 0) add_buffer(tower, "radio_model.summary_idxs", {radio.summaries});
  EncoderBlock block{hidden, radio.intermediate};
  block.attention_bias = false;
  block.qkv = "attn.qkv", block.o = "attn.proj";
  Module blocks = encoder_blocks("radio_model.model.blocks.{layer}", radio.layers, block, Part::vision);
  Tower more(blocks, Part::vision);
  if (radio.scaled) more.tensor("layer_scale1.lambda1", {hidden}).tensor("layer_scale2.lambda1", {hidden});
  if (radio.qkv_bias) more.tensor("attn.qkv.bias", {Quantity(3) * hidden});
  more.tensor("attn.proj.bias", {hidden});
  tower.children.push_back(std::move(blocks));
  return tower;
}

}  // namespace

Module own_radio_tower(ConfigReader& vision, ConfigReader& args) {
  Module tower = radio_tower(read_own_radio(vision, args));
  for (const char* normed : {"norm_mean", "norm_std"})
    add_buffer(tower, std::string("radio_model.input_conditioner.") + normed, {3, 1, 1});
  return tower;
}

namespace {

// A shuffle joins 1 / downsample_ratio patches on each side.
Quantity shuffled_radio(ConfigReader& document, const Quantity& hidden) {
  const auto side = static_cast<std::uint64_t>(1 / document.real("downsample_ratio", 0.5, 1e-3, 1));
  return Quantity(side * side) * hidden;
}

Module radio_projector(const Quantity& in, const Quantity& between, const Quantity& out, bool bias) {
  Module projector{"mlp1", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .norm("0", in, bias)
      .matrix("1", in, between, bias)
      .matrix("3", between, out, bias);
  return projector;
}

void add_radio_projector(ConfigReader& document, ModuleTree& tree) {
  const Quantity hidden = document.size("vision_hidden_size|vit_hidden_size", 1280);
  const Quantity between = document.size("projector_hidden_size", 4096);
  add_tower(tree, radio_projector(shuffled_radio(document, hidden), between, text_width(tree), false));
  if (tree.mtp.empty()) return;
  Module last{"vision_projector", "projector", {}, {}, {}};
  Tower(last, Part::projector).norm("vision_final_layernorm", hidden, true);
  add_tower(tree, std::move(last));
}

}  // namespace

// A vision_config with `args` is RADIO's own.
void add_nemotron_omni(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  if (TowerConfig args(*vision, tree, "args"); args) {
    add_tower(tree, own_radio_tower(*vision, *args));
  } else {
    add_tower(tree, radio_tower(read_radio(*vision, document.size("video_temporal_patch_size", 2).value())));
  }
  add_radio_projector(document, tree);
  for (const char* hears : {"audio_config", "sound_config"}) {
    if (TowerConfig audio(document, tree, hears); audio) return add_parakeet(*audio, tree);
  }
}

void add_nemotron_vl(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  document.require(static_cast<bool>(vision), "vision_config is missing");
  TowerConfig args(*vision, tree, "args");
  vision->require(static_cast<bool>(args), "vision_config.args is missing");
  add_tower(tree, own_radio_tower(*vision, *args));
  add_radio_projector(document, tree);
  if (TowerConfig sound(document, tree, "sound_config"); sound) add_parakeet(*sound, tree);
}

// A LayerNorm and biases; both widths are told.
void add_llama_nemotron_vl(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  document.require(static_cast<bool>(vision), "vision_config is missing");
  TowerConfig args(*vision, tree, "args");
  vision->require(static_cast<bool>(args), "vision_config.args is missing");
  add_tower(tree, own_radio_tower(*vision, *args));
  const Quantity in = shuffled_radio(document, document.size("vit_hidden_size"));
  add_tower(tree, radio_projector(in, document.size("projector_hidden_size"), text_width(tree), true));
}

// An embedder: it has no head, and its language model is named as its base class alone. Llama 3.2 that attends both ways.
void add_llama_nemotron_embed(ConfigReader& document, ModuleTree& tree) {
  std::erase_if(tree.modules, [](const Module& module) {
    return !module.tensors.empty() && module.tensors.front().role == Role::output_head;
  });
  TowerConfig vision(document, tree, "vision_config");
  document.require(static_cast<bool>(vision), "vision_config is missing");
  Module tower = siglip_tower(*vision, "vision_model");
  if (vision->flag("vision_use_head", false)) tower.children.push_back(siglip_head(*vision));
  add_tower(tree, std::move(tower));
  const Quantity in = shuffled_radio(document, vision->size("hidden_size", 768));
  add_tower(tree, radio_projector(in, text_width(tree), text_width(tree), true));
}

void add_eagle(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision || !add_encoder(*vision, tree, "vision_model.vision_model", "siglip_vision_model")) return;
  const Quantity in = shuffled_radio(document, vision->size("hidden_size", 768)), out = text_width(tree);
  add_tower(tree, radio_projector(in, out, out, true));
}

}  // namespace assay::families
