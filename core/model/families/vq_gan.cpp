#include "core/model/families/vq_gan.h"

#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// The convolutions of a VQ-GAN, all with biases.
class Painter {
 public:
  explicit Painter(Module& module) : tower_(module, Part::vision) {}
  void convolve(const std::string& name, const Quantity& in, const Quantity& out, std::uint64_t side) {
    tower_.tensor(name + ".weight", {out, in, side, side}).tensor(name + ".bias", {out});
  }
  void norm(const std::string& name, const Quantity& channels) { tower_.norm(name, channels, true); }
  void residual_block(const std::string& path, const Quantity& in, const Quantity& out) {
    norm(path + ".norm1", in);
    convolve(path + ".conv1", in, out, 3);
    norm(path + ".norm2", out);
    convolve(path + ".conv2", out, out, 3);
    if (in.value() != out.value()) convolve(path + ".nin_shortcut", in, out, 1);
  }
  void attention(const std::string& path, const Quantity& channels) {
    norm(path + ".norm", channels);
    for (const char* name : {".q", ".k", ".v", ".proj_out"}) convolve(path + name, channels, channels, 1);
  }
  void middle(const std::string& path, const std::array<std::string, 3>& parts, const Quantity& channels) {
    residual_block(path + "." + parts[0], channels, channels);
    attention(path + "." + parts[1], channels);
    residual_block(path + "." + parts[2], channels, channels);
  }

 private:
  Tower tower_;
};

// One level: its blocks, those of the narrowest with attention, and a convolution to the next level.
void add_level(Painter& painter, const VqGan& gan, const std::string& path, std::uint64_t blocks,
               const Quantity& in, std::size_t level, const std::string& resampled) {
  const Quantity out = gan.channels(level);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    painter.residual_block(path + "." + gan.names.block + "." + std::to_string(i), i == 0 ? in : out, out);
    if (gan.narrowest_attends && level + 1 == gan.multipliers.size())
      painter.attention(path + ".attn." + std::to_string(i), out);
  }
  if (!resampled.empty()) painter.convolve(path + "." + resampled + ".conv", out, out, 3);
}

void add_drawing(Painter& painter, const VqGan& gan) {
  const VqNames& names = gan.names;
  const std::size_t levels = gan.multipliers.size();
  const Quantity narrow = gan.channels(levels - 1);
  painter.convolve("decoder.conv_in", gan.latent, narrow, 3);
  painter.middle("decoder.mid", names.middle, narrow);
  for (std::size_t i = 0; i < levels; ++i) {  // from the narrowest
    const std::size_t level = levels - 1 - i;
    const std::size_t place = gan.words_of_it ? i : level;  // where it stands in the list
    add_level(painter, gan, "decoder." + names.up + "." + std::to_string(place), gan.blocks + 1,
              i == 0 ? narrow : gan.channels(level + 1), level, level > 0 ? "upsample" : "");
  }
  painter.norm("decoder.norm_out", gan.channels(0));
  painter.convolve("decoder.conv_out", gan.channels(0), gan.out, 3);
}

}  // namespace

Module vq_gan(const VqGan& gan) {
  const std::size_t levels = gan.multipliers.size();
  const Quantity narrow = gan.channels(levels - 1);
  const VqNames& names = gan.names;
  Module module{names.path, "VQ-GAN", {}, {}, {}};
  Painter painter(module);
  painter.convolve("encoder.conv_in", gan.in, gan.base, 3);
  for (std::size_t i = 0; i < levels; ++i)
    add_level(painter, gan, "encoder." + names.down + "." + std::to_string(i), gan.blocks,
              i == 0 ? gan.base : gan.channels(i - 1), i, i + 1 < levels ? "downsample" : "");
  painter.middle("encoder.mid", names.middle, narrow);
  painter.norm("encoder.norm_out", narrow);
  painter.convolve("encoder.conv_out", narrow, Quantity(gan.doubled ? 2 : 1) * gan.latent, 3);
  if (gan.draws) add_drawing(painter, gan);
  if (!gan.words_of_it) return module;
  painter.convolve("quant_conv", gan.latent, gan.embedding, 1);
  painter.convolve("post_quant_conv", gan.embedding, gan.latent, 1);
  Tower(module, Part::vision).tensor("quantize.embedding.weight", {gan.words, gan.embedding});
  return module;
}

void add_flux_autoencoder(ModuleTree& tree) {
  VqGan gan{{"", "down", "up", "block", {"block_1", "attn_1", "block_2"}},
            128,
            16,
            3,
            3,
            0,
            0,
            {1, 2, 4, 4},
            2,
            true,
            false};
  Module module = vq_gan(gan);
  module.title = "VAE it draws with";
  add_tower(tree, std::move(module));
}

}  // namespace assay::families
