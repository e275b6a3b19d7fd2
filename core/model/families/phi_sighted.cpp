// Phi with eyes and ears, as Microsoft's own code names it: Phi-3-vision and -3.5-vision behind a CLIP, Phi-4-multimodal with
// adapters of low rank for images and for sound, Phi-4-reasoning-vision behind a SigLIP2.
#include "core/model/families/phi_sighted.h"

#include "core/model/families/all_2026.h"
#include "core/model/families/encoder_towers.h"
#include "core/model/families/own_code_forward.h"
#include "core/model/families/phi3.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// Four patches of an image make a token. The config names a CLIP and none of its sizes but what it gives.
void describe_phi3_v(ConfigReader& config, ModuleTree& tree) {
  describe_phi3_of(config, tree,
                   {.vocabulary = 32064, .hidden = 3072, .intermediate = 8192, .layers = 32, .heads = 32});
  TowerConfig clip(config, tree, "img_processor");
  config.require(bool(clip), "img_processor is missing");
  const std::string before = "model.vision_embed_tokens";
  add_tower(tree, clip_tower(*clip, before + ".img_processor.vision_model", kClipLarge336));
  const Quantity joined = Quantity(4) * clip->size("image_dim_out", 1024), out = text_width(tree);
  Module projector{before, "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .tensor("glb_GN", {1, 1, joined})
      .tensor("sub_GN", {1, 1, 1, joined})
      .matrix("img_projection.0", joined, out, true)
      .matrix("img_projection.2", out, out, true);
  // The table of tokens under a second name.
  TensorSpec again =
      parameter("wte.weight", {{"vocab_size", tree.vocabulary}, out}, Role::tower, Part::projector);
  again.storage = Storage::tied;
  again.same_as = "model.embed_tokens.weight";
  projector.tensors.push_back(std::move(again));
  add_tower(tree, std::move(projector));
}

// The matrices of a layer become "….base_layer.weight", and each has two pairs of narrow ones beside it. No token of text
// alone meets these.
void add_adapters(ConfigReader& config, ModuleTree& tree) {
  for (const std::string kind : {"speech", "vision"}) {
    const auto section = config.config().section(kind + "_lora");
    if (!section) continue;
    ConfigReader adapter(*section, kind + "_lora");
    const Quantity rank = adapter.size("r");
    for (const Module& module : std::vector<Module>(tree.modules)) {
      if (module.repeat.over != Repeat::Over::layers) continue;
      Module beside = module;
      beside.title = "adapters (" + kind + ")", beside.tensors.clear(), beside.children.clear();
      for (const Module& block : module.children) {
        for (const TensorSpec& matrix : block.tensors) {
          if (!matrix.quantizable) continue;
          const std::string name = block.path + "." + matrix.name.substr(0, matrix.name.rfind('.'));
          Tower(beside, Part::projector)
              .tensor(name + ".lora_A." + kind + ".weight", {rank, matrix.shape[1]})
              .tensor(name + ".lora_B." + kind + ".weight", {matrix.shape[0], rank});
        }
      }
      add_tower(tree, std::move(beside));
    }
  }
  for (Module& module : tree.modules) {
    if (module.repeat.over != Repeat::Over::layers) continue;
    for (Module& block : module.children) {
      for (TensorSpec& matrix : block.tensors) {
        if (matrix.quantizable) matrix.name.insert(matrix.name.rfind('.'), ".base_layer");
      }
    }
  }
}

void describe_phi4_mm(ConfigReader& config, ModuleTree& tree) {
  describe_phi3_of(
      config, tree,
      {.vocabulary = 200064, .hidden = 3072, .intermediate = 8192, .layers = 32, .heads = 32, .kv_heads = 8});
  // Its SigLIP is that of the code, not of the config.
  const auto eyes = config.config().section("img_processor");
  const auto embedder = config.config().section("embd_layer");
  config.require(embedder.has_value(), "embd_layer is missing");
  ConfigReader vision(eyes ? *eyes : *embedder, "embd_layer");
  add_phi_eyes(vision, tree, PhiCode::microsoft);
  const auto processor = config.config().section("audio_processor");
  const auto ears = processor ? processor->section("config") : std::nullopt;
  config.require(ears.has_value(), "audio_processor.config is missing");
  ConfigReader audio(*ears, "audio_processor");
  add_phi_ears(audio, tree, PhiCode::microsoft);
  add_adapters(config, tree);
}

void describe_phi4_siglip(ConfigReader& config, ModuleTree& tree) {
  describe_phi3_of(config, tree,
                   {.vocabulary = 32064, .hidden = 3072, .intermediate = 8192, .layers = 32, .heads = 32});
  TowerConfig vision(config, tree, "vision_config");
  config.require(bool(vision), "vision_config is missing");
  Module tower = siglip_tower(*vision, "model.vision_tower.vision_tower.vision_model", kSiglip2);
  if (vision->flag("vision_use_head", true)) tower.children.push_back(siglip_head(*vision, kSiglip2));
  add_tower(tree, std::move(tower));
  const Quantity out = text_width(tree);
  Module projector{"model.mm_projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("0", config.size("mm_hidden_size", 1152), out, true)
      .matrix("2", out, out, true);
  add_tower(tree, std::move(projector));
}

constexpr std::string_view kPhi3VArchitectures[] = {"Phi3VForCausalLM"}, kPhi3VTypes[] = {"phi3_v"},
                           kPhi4MmArchitectures[] = {"Phi4MMForCausalLM"}, kPhi4MmTypes[] = {"phi4mm"},
                           kPhi4SiglipArchitectures[] = {"Phi4ForCausalLMV"},
                           kPhi4SiglipTypes[] = {"phi4-siglip"};

}  // namespace

const Family kPhi3V = {
    "phi3_v", "Phi-3-vision, Phi-3.5-vision", kPhi3VArchitectures, kPhi3VTypes, {}, describe_phi3_v, nullptr};
const Family kPhi4Mm = {
    "phi4mm", "Phi-4-multimodal (own code)", kPhi4MmArchitectures, kPhi4MmTypes, {}, describe_phi4_mm,
    nullptr};
const Family kPhi4Siglip = {"phi4_siglip",
                            "Phi-4-reasoning-vision",
                            kPhi4SiglipArchitectures,
                            kPhi4SiglipTypes,
                            {},
                            describe_phi4_siglip,
                            nullptr};

}  // namespace assay::families
