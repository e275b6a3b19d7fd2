// Mamba and Mamba-2 as their authors published them (state-spaces/mamba-130m to 2.8b, mamba2-*, mamba2attn-2.7b), under names of
// their own: layers that scan, of either kind, some that attend in their place, and an MLP behind each where the config gives it
// a width. Source: mamba_ssm, models/mixer_seq_simple.py, models/config_mamba.py and modules/.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/families/all_kin.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

struct ScanOrAttend {
  Module scan, attend;
  RecurrentGeometry scan_state, attend_state;
  std::optional<HeadAttention> heads;
};

void read_mamba1(ConfigReader& ssm, const Quantity& hidden, ScanOrAttend& mixers) {
  Mamba1 m;
  m.hidden = hidden;
  m.inner = Quantity("expand × d_model", (ssm.size("expand", 2) * hidden).value());
  m.state = ssm.size("d_state", 16);
  const Quantity automatic("d_model / 16", (hidden.value() + 15) / 16);
  const auto rank = ssm.config().text().find("dt_rank");
  const bool is_text = rank != ssm.config().text().end() && rank->is_string();
  m.rank = is_text ? automatic : ssm.size("dt_rank", automatic);
  m.kernel = ssm.size("d_conv", 4);
  m.bias = ssm.flag("bias", false);
  m.conv_bias = ssm.flag("conv_bias", true);
  mixers.scan = mamba1(m);
  mixers.scan_state = geometry(m, {});
}

void read_mamba2(ConfigReader& ssm, const Quantity& hidden, ScanOrAttend& mixers) {
  Mamba2 m;
  m.hidden = hidden;
  const Quantity inner("expand × d_model", (ssm.size("expand", 2) * hidden).value());
  const auto scanned = ssm.optional_size("d_ssm");
  ssm.require(!scanned || scanned->value() == inner.value(),
              "d_ssm is not expand × d_model: what passes the scan by is not described");
  ssm.require(!ssm.flag("D_has_hdim", false), "D_has_hdim is true: one D a channel is not described");
  m.head_dim = ssm.size("headdim", 64);
  m.heads = ssm.quotient(inner, m.head_dim, "heads");
  m.groups = ssm.size("ngroups", 1);
  m.state = ssm.size("d_state", 128);
  m.kernel = ssm.size("d_conv", 4);
  m.bias = ssm.flag("bias", false);
  m.conv_bias = ssm.flag("conv_bias", true);
  m.norm = ssm.flag("rmsnorm", true);
  mixers.scan = mamba2(m);
  mixers.scan_state = geometry(m, {});
}

// Queries, keys and values are one matrix, behind which they may pass a convolution.
void read_attend(ConfigReader& own, const Quantity& hidden, ScanOrAttend& mixers) {
  own.require(own.number("mlp_dim", 0) == 0,
              "attn_cfg.mlp_dim is there: an MLP beside attention is not described");
  HeadAttention a;
  a.path = "mixer";
  a.hidden = hidden;
  a.heads = own.size("num_heads");
  a.kv_heads = own.optional_size("num_heads_kv").value_or(a.heads);
  own.require_divides(a.kv_heads, a.heads);
  const auto head_dim = own.optional_size("head_dim");
  a.head_dim = head_dim ? *head_dim : own.quotient(hidden, a.heads, "head_dim");
  a.fused = "in_proj", a.o = "out_proj";
  a.qkv_bias = own.flag("qkv_proj_bias", true);
  a.output_bias = own.flag("out_proj_bias", true);
  mixers.attend = attention(a);
  mixers.heads = a;
  if (own.number("d_conv", 0) == 0) return;
  const Quantity kernel = own.size("d_conv"), channels = (a.heads + Quantity(2) * a.kv_heads) * a.head_dim;
  mixers.attend.tensors.push_back(
      parameter("conv1d.weight", {channels, 1, kernel}, Role::convolution, Part::attention));
  mixers.attend.tensors.push_back(parameter("conv1d.bias", {channels}, Role::convolution, Part::attention));
  mixers.attend.tensors.back().bias = true;
  mixers.attend_state = {.title = "convolutions before attention",
                         .layers = {},
                         .heads = a.heads.value(),
                         .conv_values = (channels * Quantity(kernel.value() - 1)).value(),
                         .state_values = 0};
}

ScanOrAttend read_mixers(ConfigReader& config, const ModuleTree& tree, const Quantity& hidden, bool attends) {
  ScanOrAttend mixers;
  const ModelConfig none = ModelConfig::from_json({{"model_type", tree.family}}, config.config().source());
  const auto section = [&](const char* key) {
    const auto own = config.config().text_section(key);
    config.require(own || !config.has(key), std::string(key) + " is no object");
    return own.value_or(none);
  };
  const ModelConfig ssm_section = section("ssm_cfg");
  ConfigReader ssm(ssm_section, tree.family);
  const std::string kind = ssm.text("layer", "Mamba1");
  config.require(kind == "Mamba1" || kind == "Mamba2", "ssm_cfg.layer is neither Mamba1 nor Mamba2");
  kind == "Mamba1" ? read_mamba1(ssm, hidden, mixers) : read_mamba2(ssm, hidden, mixers);
  if (!attends) return mixers;
  const ModelConfig attn_section = section("attn_cfg");
  ConfigReader own(attn_section, tree.family);
  read_attend(own, hidden, mixers);
  return mixers;
}

Quantity padded(ConfigReader& config) {
  const std::uint64_t words = config.size("vocab_size", 50277).value(),
                      to = config.size("pad_vocab_size_multiple", 8).value();
  return {"vocab_size, padded", (words + to - 1) / to * to};
}

// Gates and ups lie in one matrix, and widths are whole multiples of 128.
std::optional<Module> read_mlp(ConfigReader& config, const Quantity& hidden) {
  if (config.number("d_intermediate", 0) == 0) return std::nullopt;
  const std::uint64_t width = config.size("d_intermediate").value();
  GatedMlp mlp{hidden, Quantity("d_intermediate", (width + 127) / 128 * 128)};
  mlp.fused = "fc1", mlp.down = "fc2";
  return gated_mlp(mlp);
}

void describe_state_spaces(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = padded(config);
  d.hidden = config.size("d_model", 2560);
  d.layers = read_layers(config, "n_layer", 64);
  d.tied = config.flag("tie_embeddings", true);
  note_sizes(tree, d);
  std::vector<std::uint64_t> attending =
      config.numbers("attn_layer_idx").value_or(std::vector<std::uint64_t>{});
  std::erase_if(attending, [&](std::uint64_t i) { return i >= d.layers.value(); });
  std::sort(attending.begin(), attending.end());
  attending.erase(std::unique(attending.begin(), attending.end()), attending.end());
  const auto attends = [&](std::uint64_t i) {
    return std::binary_search(attending.begin(), attending.end(), i);
  };
  ScanOrAttend mixers = read_mixers(config, tree, d.hidden, !attending.empty());
  const auto mlp = read_mlp(config, d.hidden);
  const bool norm_bias = !config.flag("rms_norm", true);
  const auto groups = group_layers(
      "backbone.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return attends(i) ? "layers that attend" : "layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, "norm", d.hidden, Role::input_norm, norm_bias);
        if (mlp) add_norm(layer, "norm2", d.hidden, Role::pre_feedforward_norm, norm_bias);
        layer.children = {attends(i) ? mixers.attend : mixers.scan};
        if (mlp) layer.children.push_back(*mlp);
      });
  add_frame(tree, d, groups,
            {.embedding = "backbone.embedding", .final_norm = "backbone.norm_f", .norm_bias = norm_bias});
  mixers.scan_state.layers = layers_where(d.layers, [&](std::uint64_t i) { return !attends(i); });
  if (!mixers.scan_state.layers.empty()) tree.recurrent.push_back(std::move(mixers.scan_state));
  if (mixers.heads) tree.attention.push_back(geometry(*mixers.heads, attending));
  if (mixers.attend_state.conv_values > 0) {
    mixers.attend_state.layers = attending;
    tree.recurrent.push_back(std::move(mixers.attend_state));
  }
}

constexpr std::string_view kStateSpacesNames[] = {"MambaLMHeadModel"};

}  // namespace

const Family kStateSpaces = {
    "state_spaces", "Mamba and Mamba-2 of state-spaces", kStateSpacesNames, {}, {}, describe_state_spaces};

}  // namespace assay::families
