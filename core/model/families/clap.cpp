// CLAP compares sounds with words: a RoBERTa, and a Swin over a picture of sound, that end in one space. The encoder of words is
// told as the model, that of sound as a tower. Source: transformers 5.24.
#include "core/model/families/all_encoders.h"
#include "core/model/families/encoder_kin.h"
#include "core/model/families/image_parts.h"
#include "core/model/families/norm_statistics.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

void add_normed(Module& module, const std::string& name, const Quantity& width) {
  Tower(module, Part::audio).norm(name, width, true);
  add_norm_statistics(module, name, width.value());
}

// How long and short pictures of one sound are weighed against each other.
void add_fusion(ConfigReader& audio, Module& enters, const Quantity& width, const Sides& patch) {
  audio.require(audio.text("fusion_type", "") == "aff_2d", "fusion_type is not aff_2d");
  const std::uint64_t ratio = audio.size("aff_block_r", 4).value();
  audio.require(ratio <= width.value(), "aff_block_r exceeds patch_embeds_hidden_size");
  const Quantity narrow("patch_embeds_hidden_size / aff_block_r", width.value() / ratio);
  Tower tower(enters, Part::audio);
  tower
      .tensor("mel_conv2d.weight",
              {width, audio.size("patch_embed_input_channels", 1), patch.height, Quantity(3) * patch.width})
      .tensor("mel_conv2d.bias", {width});
  struct Half {
    std::string path;
    std::uint64_t first;  // the whole picture's mean comes before
  };
  for (const Half& half : {Half{"fusion_model.local_att.", 0}, Half{"fusion_model.global_att.", 1}}) {
    const auto at = [&](std::uint64_t index) { return half.path + std::to_string(half.first + index); };
    tower.tensor(at(0) + ".weight", {narrow, width, 1, 1}).tensor(at(0) + ".bias", {narrow});
    add_normed(enters, at(1), narrow);
    tower.tensor(at(3) + ".weight", {width, narrow, 1, 1}).tensor(at(3) + ".bias", {width});
    add_normed(enters, at(4), width);
  }
}

void add_sound_side(ConfigReader& audio, ModuleTree& tree) {
  const SwinStages of{.width = audio.size("patch_embeds_hidden_size", 96),
                      .window = audio.size("window_size", 8),
                      .depths = stage_sizes(audio, "depths", {2, 2, 6, 2}),
                      .heads = stage_sizes(audio, "num_attention_heads", {4, 8, 16, 32}),
                      .part = Part::audio};
  const Sides patch = pixel_sides(audio, "patch_size", 4);
  const std::string path = "audio_model.audio_encoder";
  Module enters{path + ".patch_embed", "what enters", {}, {}, {}};
  Tower tower(enters, Part::audio);
  tower
      .tensor("proj.weight",
              {of.width, audio.size("patch_embed_input_channels", 1), patch.height, patch.width})
      .tensor("proj.bias", {of.width});
  if (audio.flag("enable_patch_layer_norm", true)) tower.norm("norm", of.width, true);
  if (audio.flag("enable_fusion", false)) add_fusion(audio, enters, of.width, patch);
  add_tower(tree, std::move(enters));
  std::vector<Module> stages;
  const Quantity width = add_swin_stages(audio, stages, path + ".layers", of);
  for (Module& stage : stages) add_tower(tree, std::move(stage));
  Module norms{path, "norms", {}, {}, {}};
  add_normed(norms, "batch_norm", audio.size("num_mel_bins", 64));
  Tower(norms, Part::audio).norm("norm", width, true);
  add_tower(tree, std::move(norms));
}

void describe_clap(ConfigReader& config, ModuleTree& tree) {
  const ModelConfig own = config.config().document_only();
  ConfigReader document(own, "clap");
  const Quantity common = document.size("projection_dim", 512);
  EncoderKin kin{.prefix = "text_model.", .positions = 514, .types = 1};
  kin.sizes.vocabulary = 50265;
  const Decoder d = read_encoder(config, tree, kin);
  add_encoder_tables(config, tree, d, kin, kin.prefix);
  add_buffer(tree.modules.back(), "text_model.embeddings.token_type_ids",
             {1, config.size("max_position_embeddings", kin.positions).value()});
  tree.modules.push_back(encoder_layer(d, kin, kin.prefix));
  Module head = head_module("into the common space");
  add_linear(head, head_matrix("text_model.pooler.dense", d.hidden, d.hidden));
  add_linear(head, head_matrix("text_projection.linear1", d.hidden, common));
  add_linear(head, head_matrix("text_projection.linear2", common, common));
  tree.modules.push_back(std::move(head));
  TowerConfig audio(config, tree, "audio_config");
  config.require(static_cast<bool>(audio), "audio_config is missing");
  add_sound_side(*audio, tree);
  Module projection{"", "into the common space", {}, {}, {}};
  Tower(projection, Part::projector)
      .matrix("audio_projection.linear1", audio->size("hidden_size", 768), common, true)
      .matrix("audio_projection.linear2", common, common, true)
      .tensor("logit_scale_a", {})
      .tensor("logit_scale_t", {});
  add_tower(tree, std::move(projection));
}

constexpr std::string_view kClapArchitectures[] = {"ClapModel"}, kClapTypes[] = {"clap"};

}  // namespace

const Family kClap = {"clap", "CLAP", kClapArchitectures, kClapTypes, {}, describe_clap};

}  // namespace assay::families
