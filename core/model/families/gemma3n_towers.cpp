#include "core/model/families/gemma3n_towers.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace gemma3n_towers {
namespace {

using namespace blocks;

// --- MobileNet-V5 (timm's mobilenetv5_300m_enc) ------------------------------------------------------------------

class MobileNet {
 public:
  explicit MobileNet(Module& module) : tower_(module, Part::vision) {}

  void all() {
    tower_.tensor("conv_stem.conv.weight", {64, 3, 3, 3}).tensor("conv_stem.conv.bias", {64});
    tower_.norm("conv_stem.bn", 64, false);
    edges();
    stage(1, 5, 128, 256, 768, 1024, 0);
    stage(2, 8, 256, 640, 1536, 2560, 5);
    inverted("blocks.2.8", 640, 640, 640, {});
    attending(2, 9, 28, 640, 12, 64, true);
    stage(3, 1, 640, 1280, 3840, 0, 5);
    attending(3, 1, 38, 1280, 16, 96, false);
    conv_norm("msfa.ffn.pw_exp", 640 + 1280, 3840);
    conv_norm("msfa.ffn.pw_proj", 3840, 2048);
    tower_.norm("msfa.norm", 2048, false);
  }

 private:
  struct Strides {
    std::uint64_t start = 0, mid = 0;  // sizes of depthwise kernels before and behind the widening; 0: none
  };
  void conv_norm(const std::string& name, std::uint64_t in, std::uint64_t out, std::uint64_t size = 1) {
    tower_.tensor(name + ".conv.weight", {out, in, size, size}).norm(name + ".bn", out, false);
  }
  void edges() {
    for (std::uint64_t i = 0; i < 3; ++i) {
      const std::string name = fmt::format("blocks.0.{}.", i);
      const std::uint64_t in = i == 0 ? 64 : 128, wide = 4 * in;
      tower_.tensor(name + "conv_exp.weight", {wide, in, 3, 3}).norm(name + "bn1", wide, false);
      tower_.tensor(name + "conv_pwl.weight", {128, wide, 1, 1}).norm(name + "bn2", 128, false);
    }
  }
  void inverted(const std::string& block, std::uint64_t in, std::uint64_t wide, std::uint64_t out,
                Strides kernels) {
    if (kernels.start != 0) conv_norm(block + ".dw_start", 1, in, kernels.start);
    conv_norm(block + ".pw_exp", in, wide);
    if (kernels.mid != 0) conv_norm(block + ".dw_mid", 1, wide, kernels.mid);
    conv_norm(block + ".pw_proj", wide, out);
    tower_.tensor(block + ".layer_scale.gamma", {out});
  }
  // The first block of a stage makes it narrower and deeper; the kernels of the others are 5, or 5 and 3 in turn.
  void stage(std::uint64_t index, std::uint64_t count, std::uint64_t in, std::uint64_t out,
             std::uint64_t first, std::uint64_t wide, std::uint64_t kernel) {
    inverted(fmt::format("blocks.{}.0", index), in, first, out, {kernel == 0 ? 3U : kernel, 5});
    for (std::uint64_t i = 1; i < count; ++i) {
      const std::uint64_t start = kernel != 0 ? kernel : i % 2 == 1 ? 5 : 3;
      inverted(fmt::format("blocks.{}.{}", index, i), out, wide, out, {start, 0});
    }
  }
  // Attention with one head of keys and a widening of two, in turn; with keys and values thinned out first or not.
  void attending(std::uint64_t stage, std::uint64_t begin, std::uint64_t count, std::uint64_t width,
                 std::uint64_t heads, std::uint64_t head, bool thinned) {
    for (std::uint64_t i = begin; i < begin + count; ++i) {
      const std::string block = fmt::format("blocks.{}.{}", stage, i);
      if ((i - begin) % 2 == 1) {
        inverted(block, width, 2 * width, width, {});
        continue;
      }
      tower_.norm(block + ".norm", width, false);
      tower_.tensor(block + ".attn.query.proj.weight", {heads * head, width, 1, 1});
      for (const char* name : {".attn.key", ".attn.value"}) {
        if (thinned)
          tower_.tensor(block + name + ".down_conv.weight", {width, 1, 3, 3})
              .norm(block + name + ".norm", width, false);
        tower_.tensor(block + name + ".proj.weight", {head, width, 1, 1});
      }
      tower_.tensor(block + ".attn.output.proj.weight", {width, heads * head, 1, 1});
      tower_.tensor(block + ".layer_scale.gamma", {width});
    }
  }
  Tower tower_;
};

// Tokens of its own beside what the tower gives: both are normed, and projected by one matrix.
void add_embedder(ConfigReader& side, ModuleTree& tree, const std::string& path, std::uint64_t hidden_default,
                  const Quantity& text_hidden) {
  const Quantity hidden = side.size("hidden_size", hidden_default), vocabulary = side.size("vocab_size", 128);
  Module module{path, "projector", {}, {}, {}};
  Tower(module, Part::projector)
      .tensor("embedding.weight", {vocabulary, hidden})
      .norm("hard_embedding_norm", hidden, false)
      .norm("soft_embedding_norm", hidden, false)
      .matrix("embedding_projection", hidden, text_hidden, false);
  tree.towers.push_back(std::move(module));
}

void add_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const std::string architecture = vision->text("architecture", "mobilenetv5_300m_enc");
  if (architecture == "mobilenetv5_300m_enc") {
    Module tower{"model.vision_tower.timm_model", "vision tower", {}, {}, {}};
    MobileNet(tower).all();
    tree.towers.push_back(std::move(tower));
  } else {
    tree.not_counted.push_back({fmt::format("vision tower (timm's {})", architecture), std::nullopt});
  }
  add_embedder(*vision, tree, "model.embed_vision", 2048, text_hidden);
}

// --- The conformer -------------------------------------------------------------------------------------------------

using Pairs = std::array<std::array<std::uint64_t, 2>, 2>;
Pairs read_pairs(ConfigReader& audio, std::string_view key, std::uint64_t otherwise) {
  Pairs pairs{{{otherwise, otherwise}, {otherwise, otherwise}}};
  const ParsedJson& document = audio.config().document();
  const auto given = document.find(key);
  if (given == document.end() || given->is_null()) return pairs;
  const std::string fault = fmt::format("audio_config.{} is not two pairs of sizes", key);
  audio.require(given->is_array() && given->size() == 2, fault);
  for (std::size_t i = 0; i < 2; ++i) {
    audio.require((*given)[i].is_array() && (*given)[i].size() == 2, fault);
    for (std::size_t j = 0; j < 2; ++j) {
      const ParsedJson& size = (*given)[i][j];
      audio.require(size.is_number_unsigned() && size > 0 && size < 1000000, fault);
      pairs[i][j] = size.get<std::uint64_t>();
    }
  }
  return pairs;
}

void add_convolutions(ConfigReader& audio, Module& module, const Quantity& hidden) {
  const Pairs kernels = read_pairs(audio, "sscp_conv_kernel_size", 3),
              strides = read_pairs(audio, "sscp_conv_stride_size", 2);
  const auto channels = audio.numbers("sscp_conv_channel_size").value_or(std::vector<std::uint64_t>{128, 32});
  audio.require(channels.size() == 2 && channels[0] > 0 && channels[1] > 0,
                "audio_config.sscp_conv_channel_size is not a list of two sizes");
  Tower tower(module, Part::audio);
  std::uint64_t frequencies = audio.size("input_feat_size", 128).value(), in = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string name = fmt::format("subsample_conv_projection.conv_{}.", i);
    tower.tensor(name + "conv.weight", {channels[i], in, kernels[i][0], kernels[i][1]});
    tower.norm(name + "norm", channels[i], false);
    audio.require(frequencies + 2 >= kernels[i][1], "audio_config.input_feat_size is smaller than a kernel");
    frequencies = (frequencies + 2 - kernels[i][1]) / strides[i][1] + 1;  // one beside each end
    in = channels[i];
  }
  tower.matrix("subsample_conv_projection.input_proj_linear", Quantity(channels[1]) * Quantity(frequencies),
               hidden, false);
}

Module conformer(ConfigReader& audio, const Quantity& hidden) {
  Module layer =
      layers("conformer.{layer}", "blocks", all_layers(read_layers(audio, "conf_num_hidden_layers", 12)));
  Tower tower(layer, Part::audio);
  const Quantity head = audio.quotient(hidden, audio.size("conf_num_attention_heads", 8), "head_dim");
  for (const std::string half : {"ffw_layer_start", "ffw_layer_end"}) {
    tower.norm(half + ".pre_layer_norm", hidden, false).norm(half + ".post_layer_norm", hidden, false);
    tower.matrix(half + ".ffw_layer_1", hidden, Quantity(4) * hidden, false);
    tower.matrix(half + ".ffw_layer_2", Quantity(4) * hidden, hidden, false);
  }
  for (const char* name :
       {"attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.relative_position_embedding.pos_proj", "post"})
    tower.matrix(std::string("attention.") + name, hidden, hidden, false);
  tower.tensor("attention.attn.per_dim_scale", {head});
  tower.matrix("lconv1d.linear_start", hidden, Quantity(2) * hidden, false)
      .matrix("lconv1d.linear_end", hidden, hidden, false);
  tower.tensor("lconv1d.depthwise_conv1d.weight", {hidden, 1, audio.size("conf_conv_kernel_size", 5)});
  for (const char* name : {"attention.pre_attn_norm", "attention.post_norm", "lconv1d.pre_layer_norm",
                           "lconv1d.conv_norm", "norm"})
    tower.norm(name, hidden, false);
  return layer;
}

void add_audio(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig audio(config, tree, "audio_config");
  if (!audio) return;
  const Quantity hidden = audio->size("hidden_size", 1536);
  Module tower{"model.audio_tower", "audio tower", {}, {}, {}};
  add_convolutions(*audio, tower, hidden);
  tower.children = {conformer(*audio, hidden)};
  tree.towers.push_back(std::move(tower));
  add_embedder(*audio, tree, "model.embed_audio", 1536, text_hidden);
}

}  // namespace
}  // namespace gemma3n_towers

void add_gemma3n_towers(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  gemma3n_towers::add_vision(config, tree, text_hidden);
  gemma3n_towers::add_audio(config, tree, text_hidden);
}

}  // namespace assay::families
