// Dense decoders that llama.cpp and MLX run and the large engines have no class for: PLaMo 1, PLM, Maincoder, CodeShell, Refact,
// Talkie and Baichuan-M1. Defaults are those of the configuration class where one is at hand; else a config must say its sizes.
// Sources: MLX-LM 0.32.2 (models/plamo.py, talkie.py, baichuan_m1.py), llama.cpp's converter and loaders of the same
// architectures (conversion/codeshell.py, refact.py, plm.py).
#include <algorithm>

#include "core/model/families/all_local.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/stated_sizes.h"

namespace assay::families {
namespace {

using namespace blocks;

// PLaMo 1: attention and MLP side by side behind one norm. n_shared_head query heads share a key head;
// num_key_value_heads, which configs have too, is not read.
void describe_plamo(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {
      .sizes = {.vocabulary = 32000, .hidden = 4096, .intermediate = 13312, .layers = 32, .heads = 32},
      .bias_keys = "",
      .input_norm = "norm",
      .mlp_norm = "",
      .layer_path = "model.layers.layers.{layer}"};
  Decoder d = read_decoder(config, tree, kin.sizes, HeadDim::unused);
  d.head_dim = config.quotient(d.hidden, d.heads, "head_dim");
  const std::uint64_t shared = config.size("n_shared_head", 8).value();
  d.kv_heads = Quantity("num_attention_heads / n_shared_head", (d.heads.value() - 1) / shared + 1);
  config.require_divides(d.kv_heads, d.heads);
  describe_kin(config, tree, kin, d);
}

// PLM (arXiv 2503.12167): latent attention whose queries are projected at once, an MLP of two matrices around relu².
void describe_plm(ConfigReader& config, ModuleTree& tree) {
  require_stated(config);
  LlamaKin kin = {.sizes = kStatedSizes, .latent = LatentDefaults{.q_rank = std::nullopt}};
  kin.sizes.tied = true;
  kin.mlp.gate = "";
  describe_kin(config, tree, kin);
}

void describe_maincoder(ConfigReader& config, ModuleTree& tree) {
  require_stated(config);
  LlamaKin kin = {.sizes = kStatedSizes, .bias_keys = ""};
  kin.heads.qk_norm = QkNorm::per_head;
  describe_kin(config, tree, kin);
}

// CodeShell: GPT-2's names around rotated heads that share keys in num_query_groups groups.
void describe_codeshell(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {
      .sizes =
          {.vocabulary = 70144, .hidden = 4096, .intermediate = 0, .layers = 42, .heads = 32, .tied = true},
      .bias_keys = "",
      .bias = true,
      .input_norm = "ln_1",
      .mlp_norm = "ln_2",
      .norm_bias = true,
      .layer_path = "transformer.h.{layer}",
      .frame = {.embedding = "transformer.wte", .final_norm = "transformer.ln_f"}};
  kin.heads.path = "attn", kin.heads.fused = "c_attn", kin.heads.o = "c_proj";
  kin.mlp.gate = "", kin.mlp.up = "c_fc", kin.mlp.down = "c_proj", kin.mlp.bias = true;
  kin.more = [](ConfigReader&, const Decoder& d, Module& attention, Module&) {
    add_buffer(attention, "rotary_emb.inv_freq", {std::max<std::uint64_t>(1, d.head_dim.value() / 2)});
  };
  Decoder d = read_decoder(config, tree, kin.sizes);
  d.intermediate = config.has("n_inner") ? config.size("n_inner") : Quantity(4) * d.hidden;
  d.kv_heads = config.flag("group_query_attention", true) ? config.size("num_query_groups", 8) : d.heads;
  config.require_divides(d.kv_heads, d.heads);
  describe_kin(config, tree, kin, d);
}

// Refact 1.6B: heads with linear biases on one key head, and an MLP as wide as Llama's rule makes it.
void describe_refact(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {.sizes = {.vocabulary = 49216,
                            .hidden = 2048,
                            .intermediate = 0,
                            .layers = 32,
                            .heads = 32,
                            .kv_heads = 1,
                            .tied = true},
                  .bias_keys = "",
                  .input_norm = "ln_1",
                  .mlp_norm = "ln_2",
                  .layer_path = "transformer.h.{layer}",
                  .frame = {.embedding = "transformer.wte", .final_norm = "transformer.ln_f"}};
  kin.heads.path = "attn", kin.heads.q = "q", kin.heads.o = "c_proj";
  kin.mlp.fused = "gate_up_proj", kin.mlp.down = "c_proj";
  config.require(config.flag("multi_query", true),
                 "multi_query is not true: no Refact of that kind is published");
  Decoder d = read_decoder(config, tree, kin.sizes);
  d.kv_heads = Quantity(1);
  const std::uint64_t narrow = 8 * d.hidden.value() / 3;  // ⅔ of four times as wide, up to a multiple of 256
  d.intermediate = Quantity("intermediate", (narrow + 255) / 256 * 256);
  kin.heads.has_k = kin.heads.has_v = false;
  kin.more = [](ConfigReader&, const Decoder& of, Module& attention, Module&) {
    const std::uint64_t width = of.head_dim.value();
    add_linear(attention, {.name = "kv",
                           .in = of.hidden,
                           .out = Quantity(2) * of.head_dim,
                           .role = Role::qkv,
                           .part = Part::attention,
                           .partition = Partition::columns,
                           .members = {{Role::k, width, 1}, {Role::v, width, 1}}});
  };
  describe_kin(config, tree, kin, d);
}

// Talkie: norms without weights, and numbers that scale what they lead to: of each head, of attention, of the MLP, of the
// embedding that every layer adds again, of the head.
void describe_talkie(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {.sizes = {.vocabulary = 65540,
                            .hidden = 5120,
                            .intermediate = 13696,
                            .layers = 40,
                            .heads = 40,
                            .head_dim = 128},
                  .bias_keys = "",
                  .input_norm = "",
                  .mlp_norm = "",
                  .no_final_norm = true,
                  .layer_path = "model.blocks.{layer}",
                  .frame = {.embedding = "model.embed"}};
  kin.heads.path = "attn";
  kin.heads.q = "attn_query", kin.heads.k = "attn_key", kin.heads.v = "attn_value",
  kin.heads.o = "attn_resid";
  kin.mlp.gate = "mlp_gate", kin.mlp.up = "mlp_linear", kin.mlp.down = "mlp_resid";
  kin.more = [](ConfigReader&, const Decoder& d, Module& attention, Module&) {
    attention.tensors.push_back(
        parameter("head_gain.head_g", {d.heads}, Role::attention_gate, Part::attention));
  };
  describe_kin(config, tree, kin);
  const auto gain = [](const char* name) { return parameter(name, {1}, Role::layer_scale, Part::norm); };
  for (Module& module : tree.modules) {
    if (module.repeat.over != Repeat::Over::layers) continue;
    for (const char* name : {"attn_gain.a_g", "mlp_gain.a_g", "embed_skip.a_g"})
      module.tensors.push_back(gain(name));
  }
  Module& head = tree.modules.back();  // the matrix is named as the module of others
  head.path = "", head.tensors.front().name = "lm_head";
  head.tensors.push_back(gain("lm_head_gain.w_g"));
}

// Baichuan-M1 14B: layers with windows have heads of their own number, and each key and value is joined with that of the token
// before it by two weights a head.
void describe_baichuan_m1(ConfigReader& config, ModuleTree& tree) {
  require_stated(config);
  config.size("num_key_value_heads");
  const Decoder d = read_decoder(config, tree, kStatedSizes, HeadDim::unused);
  const std::uint64_t taps = config.size("conv_window", 2).value();
  const auto narrow = config.numbers("sliding_window_layers").value_or(std::vector<std::uint64_t>{});
  const auto is_narrow = [&](std::uint64_t i) {
    return std::find(narrow.begin(), narrow.end(), i) != narrow.end();
  };
  const auto heads_of = [&](bool windowed) {
    const auto read = [&](const char* own, const Quantity& others) {
      const auto count = windowed ? config.optional_number(own) : std::nullopt;
      return count.value_or(0) > 0 ? Quantity(own, *count) : others;
    };
    HeadAttention a{d.hidden, read("num_swa_attention_heads", d.heads),
                    read("num_swa_key_value_heads", config.size("num_key_value_heads")), 1};
    config.require_divides(a.heads, d.hidden);
    config.require_divides(a.kv_heads, a.heads);
    a.head_dim = Quantity("hidden_size / heads", d.hidden.value() / a.heads.value());
    a.fused = "W_pack";
    return a;
  };
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return is_narrow(i) ? "layers with a window" : "layers that see all"; },
      [&](Module& layer, std::uint64_t i) {
        const HeadAttention a = heads_of(is_narrow(i));
        add_pre_norms(layer, d.hidden);
        Module attend = attention(a);
        for (const char* name : {"conv_k", "conv_v"})
          attend.tensors.push_back(
              parameter(name, {1, 1, a.kv_heads, 1, Quantity(taps)}, Role::convolution, Part::attention));
        layer.children = {std::move(attend), gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups);
  for (const bool windowed : {false, true}) {
    const auto same = layers_where(d.layers, [&](std::uint64_t i) { return is_narrow(i) == windowed; });
    if (same.empty()) continue;
    const HeadAttention a = heads_of(windowed);
    tree.attention.push_back(geometry(a, same, windowed ? config.size("sliding_window").value() : 0));
    tree.recurrent.push_back({.title = "keys and values of the token before",
                              .layers = same,
                              .heads = a.kv_heads.value(),
                              .conv_values = 2 * (taps - 1) * a.kv_heads.value() * a.head_dim.value()});
  }
}

constexpr std::string_view kPlamoArchitectures[] = {"PlamoForCausalLM"}, kPlamoTypes[] = {"plamo"};
constexpr std::string_view kPlmArchitectures[] = {"PLMForCausalLM"}, kPlmTypes[] = {"plm"};
constexpr std::string_view kMaincoderArchitectures[] = {"MaincoderForCausalLM"},
                           kMaincoderTypes[] = {"maincoder"};
constexpr std::string_view kCodeshellArchitectures[] = {"CodeShellForCausalLM"},
                           kCodeshellTypes[] = {"codeshell"};
constexpr std::string_view kRefactArchitectures[] = {"GPTRefactForCausalLM"}, kRefactTypes[] = {"gpt_refact"};
constexpr std::string_view kTalkieArchitectures[] = {"TalkieForCausalLM"}, kTalkieTypes[] = {"talkie"};
constexpr std::string_view kBaichuanM1Architectures[] = {"BaichuanM1ForCausalLM"},
                           kBaichuanM1Types[] = {"baichuan_m1"};

}  // namespace

const Family kPlamo = {"plamo", "PLaMo 1", kPlamoArchitectures, kPlamoTypes, {}, describe_plamo};
const Family kPlm = {"plm", "PLM", kPlmArchitectures, kPlmTypes, {}, describe_plm};
const Family kMaincoder = {"maincoder",     "Maincoder", kMaincoderArchitectures,
                           kMaincoderTypes, {},          describe_maincoder};
const Family kCodeshell = {"codeshell",     "CodeShell", kCodeshellArchitectures,
                           kCodeshellTypes, {},          describe_codeshell};
const Family kRefact = {"gpt_refact", "Refact", kRefactArchitectures, kRefactTypes, {}, describe_refact};
const Family kTalkie = {"talkie", "Talkie", kTalkieArchitectures, kTalkieTypes, {}, describe_talkie};
const Family kBaichuanM1 = {
    "baichuan_m1", "Baichuan-M1", kBaichuanM1Architectures, kBaichuanM1Types, {}, describe_baichuan_m1};

}  // namespace assay::families
