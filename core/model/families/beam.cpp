// Beam: experts chosen by groups, a gate over what each head gives, which is biased, four norms a layer.
#include "core/model/families/all_2026.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

void add_gate_bias(ConfigReader&, const Decoder& d, Module& attention, Module&) {
  attention.tensors.push_back(parameter("gate_bias", {d.heads}, Role::attention_gate, Part::attention));
  attention.tensors.back().bias = true;
}

void describe_beam(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin{.sizes = {.vocabulary = 151936,
                         .hidden = 5120,
                         .intermediate = 20480,
                         .layers = 52,
                         .heads = 48,
                         .kv_heads = 8,
                         .head_dim = 128}};
  kin.heads.qk_norm = QkNorm::per_head;
  kin.heads.gate = "gate_proj", kin.heads.wide_gate = true;
  kin.experts = ExpertKin{.count_keys = "num_experts|num_local_experts",
                          .count = 256,
                          .active_keys = "num_experts_per_tok",
                          .active = 8,
                          .width_keys = "moe_intermediate_size",
                          .width = 2560,
                          .dense_first = 3};
  kin.experts->names.correction = "gate.e_score_correction_bias";
  kin.mlp_norm = "pre_feedforward_layernorm";
  kin.after_attention = "post_attention_layernorm", kin.after_mlp = "post_feedforward_layernorm";
  kin.windows = true, kin.window = 512;
  const Decoder d = read_decoder(config, tree, kin.sizes);
  const std::uint64_t last = d.layers.value() - 1;  // sees all, wherever it falls
  kin.windowed = [=](std::uint64_t i) { return i != last && (i + 1) % 6 != 0; };
  kin.more = add_gate_bias;
  describe_kin(config, tree, kin, d);
}

constexpr std::string_view kBeamArchitectures[] = {"BeamForCausalLM"}, kBeamTypes[] = {"beam"};

}  // namespace

const Family kBeam = {"beam", "Beam", kBeamArchitectures, kBeamTypes, {}, describe_beam, nullptr};

}  // namespace assay::families
