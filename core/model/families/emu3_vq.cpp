// Emu3 whole: its text model, and the VQ-VAE that makes words of images and films, and images of words. Within the encoder
// norms are plain; within the decoder each is scaled and shifted by convolutions of the words' embeddings. Source:
// transformers 5.24 (emu3), under the names that BAAI's releases have (text_model.model, vqmodel).
#include <fmt/format.h>
#include <bit>

#include "core/model/families/norm_statistics.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

struct Vq {
  Quantity base, latent, made, in, out, embedding, words, hidden;  // made: channels that the encoder ends in
  std::vector<std::uint64_t> multipliers, attending;  // channels of each level; levels that attend
  std::uint64_t blocks, halvings;                     // blocks a level; how often time is halved
  Quantity channels(std::size_t level) const { return Quantity(multipliers[level]) * base; }
  bool attends(std::size_t level) const {
    return std::find(attending.begin(), attending.end(), level) != attending.end();
  }
};

Vq read_vq(ConfigReader& config) {
  Vq vq{config.size("base_channels", 256),
        config.size("latent_channels", 4),
        {},
        config.size("in_channels", 3),
        config.size("out_channels", 3),
        config.size("embed_dim", 4),
        config.size("codebook_size", 32768),
        config.size("hidden_size", 1024),
        {1, 2, 2, 4},
        {3},
        config.size("num_res_blocks", 2).value(),
        static_cast<std::uint64_t>(std::bit_width(config.size("temporal_downsample_factor", 4).value()) - 1)};
  vq.made = Quantity(config.flag("double_latent", false) ? 2 : 1) * vq.latent;
  if (const auto given = config.numbers("channel_multiplier")) vq.multipliers = *given;
  if (const auto given = config.numbers("attn_resolutions")) vq.attending = *given;
  config.require(!vq.multipliers.empty() && vq.multipliers.size() <= 64 && vq.blocks <= 64,
                 "more levels than an image has");
  return vq;
}

// One side: an encoder, or a decoder, whose norms see the words.
class VqSide {
 public:
  VqSide(Module& module, const Vq& vq, bool decodes)
      : tower_(module, Part::vision), module_(module), vq_(vq), decodes_(decodes) {}

  void convolve(const std::string& name, const Quantity& in, const Quantity& out, std::uint64_t side) {
    tower_.tensor(name + ".weight", {out, in, side, side}).tensor(name + ".bias", {out});
  }
  void norm(const std::string& name, const Quantity& channels) {
    tower_.norm(decodes_ ? name + ".norm_layer" : name, channels, true);
    if (!decodes_) return;
    convolve(name + ".conv_y", vq_.embedding, channels, 1);
    convolve(name + ".conv_b", vq_.embedding, channels, 1);
  }
  void block(const std::string& path, const Quantity& in, const Quantity& out) {
    norm(path + ".norm1", in);
    convolve(path + ".conv1", in, out, 3);
    norm(path + ".norm2", out);
    convolve(path + ".conv2", out, out, 3);
    if (in.value() != out.value()) convolve(path + ".nin_shortcut", in, out, 1);
  }
  void attention(const std::string& path) {
    for (const char* name : {".q_proj", ".k_proj", ".v_proj", ".out_proj"})
      tower_.matrix(path + name, vq_.hidden, vq_.hidden, true);
  }
  void middle(const std::string& path, const Quantity& channels) {
    block(path + ".block_1", channels, channels);
    attention(path + ".attn_1");
    norm(path + ".attn_norm", channels);
    block(path + ".block_2", channels, channels);
  }
  // `resampled`: the convolution to the next level; "": there is none.
  void level(const std::string& path, std::size_t level, const Quantity& in, const std::string& resampled) {
    const Quantity out = vq_.channels(level);
    for (std::uint64_t i = 0; i < vq_.blocks + (decodes_ ? 1 : 0); ++i) {
      block(fmt::format("{}.block.{}", path, i), i == 0 ? in : out, out);
      if (!vq_.attends(level)) continue;
      attention(fmt::format("{}.attn.{}", path, i));
      norm(fmt::format("{}.attn_norms.{}", path, i), out);
    }
    if (!resampled.empty()) convolve(path + "." + resampled + ".conv", out, out, 3);
  }
  // Over time: blocks with batch norms, and convolutions that reach over `reach` frames.
  void time(const std::string& path, const Quantity& channels, std::uint64_t reach) {
    const auto over_time = [&](const std::string& name, std::uint64_t frames) {
      tower_.tensor(name + ".conv.weight", {channels, channels, frames, 3, 3})
          .tensor(name + ".conv.bias", {channels});
    };
    for (std::uint64_t i = 0; i < vq_.blocks; ++i) {
      for (const char* half : {"1", "2"}) {
        const std::string stack = fmt::format("{}.time_res_stack.{}", path, i), seen = stack + ".norm" + half;
        over_time(stack + ".conv" + half, 3);
        tower_.norm(seen, channels, true);
        add_norm_statistics(module_, seen, channels.value());
      }
    }
    for (std::uint64_t i = 0; i < vq_.halvings; ++i)
      over_time(fmt::format("{}.time_conv.{}.conv", path, i), reach);
  }

 private:
  Tower tower_;
  Module& module_;
  const Vq& vq_;
  bool decodes_;
};

void add_vq_encoder(Module& module, const Vq& vq) {
  VqSide side(module, vq, false);
  const std::size_t levels = vq.multipliers.size();
  const Quantity narrow = vq.channels(levels - 1);
  side.convolve("encoder.conv_in", vq.in, vq.base, 3);
  for (std::size_t i = 0; i < levels; ++i)
    side.level(fmt::format("encoder.down_block.down.{}", i), i, i == 0 ? vq.base : vq.channels(i - 1),
               i + 1 < levels ? "downsample" : "");
  side.middle("encoder.middle_block", narrow);
  side.norm("encoder.norm_out", narrow);
  side.convolve("encoder.conv_out", narrow, vq.made, 3);
  side.time("encoder", vq.made, 4);
}

void add_vq_decoder(Module& module, const Vq& vq) {
  VqSide side(module, vq, true);
  const std::size_t levels = vq.multipliers.size();
  const Quantity narrow = vq.channels(levels - 1);
  side.time("decoder", vq.latent, 3);
  side.convolve("decoder.conv_in", vq.latent, narrow, 3);
  side.middle("decoder.middle_block", narrow);
  for (std::size_t i = 0; i < levels; ++i)
    side.level(fmt::format("decoder.up_block.up.{}", i), i, i + 1 == levels ? narrow : vq.channels(i + 1),
               i > 0 ? "upsample" : "");
  side.norm("decoder.norm_out", vq.channels(0));
  side.convolve("decoder.conv_out", vq.channels(0), vq.out, 3);
}

}  // namespace

void add_emu3_vq(ConfigReader& document, ModuleTree& tree) {
  TowerConfig config(document, tree, "vq_config");
  if (!config) return;
  const Vq vq = read_vq(*config);
  Module module{"vqmodel", "VQ-VAE", {}, {}, {}};
  add_vq_encoder(module, vq);
  add_vq_decoder(module, vq);
  Tower(module, Part::vision)
      .tensor("quant_conv.conv.weight", {vq.embedding, vq.latent, 3, 1, 1})
      .tensor("quant_conv.conv.bias", {vq.embedding})
      .tensor("post_quant_conv.conv.weight", {vq.latent, vq.embedding, 3, 1, 1})
      .tensor("post_quant_conv.conv.bias", {vq.latent})
      .tensor("quantize.embedding.weight", {vq.words, vq.embedding});
  add_tower(tree, std::move(module));
}

}  // namespace assay::families
