// TensorRT-LLM's rules (PyTorch backend), read from its repository at 1.0.0. Its GEMMs and their words are closed, so
// little is known of how it refuses.
#include "paramcount/engine_rules.h"

namespace assay {
namespace {

constexpr EngineVersion kTrtllmVersions[] = {{{1, 0, 0}}};

constexpr EngineRule kTrtllmRules[] = {
    {Rule::heads, "tp divides the attention heads.", "", "_torch/modules/attention.py: Attention"},
    {Rule::key_heads, "Key and value heads are a multiple of tp, or tp one of theirs.", "",
     "_torch/modules/attention.py: Attention"},
    {Rule::key_heads_repeated,
     "With fewer key and value heads than ranks, neighbouring ranks hold the same one.", "",
     "_torch/models/modeling_utils.py: duplicate_kv_weight"},
    {Rule::latent_everywhere, "The latent of MLA is cached whole on every rank.", "",
     "_torch/modules/attention.py: MLA"},
    {Rule::experts_lost,
     "Where ep does not divide the experts, the last ones belong to nobody, without a word.", "",
     "mapping.py: Mapping.ep_experts"},
    {Rule::experts_needed, "Expert parallel needs a model with experts.", "", "mapping.py: Mapping"},
    {Rule::widths, "tp divides every width that is cut.", "", "_torch/modules/linear.py: Linear"},
    {Rule::expert_widths, "The ranks of an expert divide its width.", "", "_torch/modules/fused_moe"},
    {Rule::fp8_whole_blocks, "FP8 in blocks: what a rank holds is whole blocks.", "",
     "_torch/modules/linear.py: FP8BlockScalesLinearMethod"},
    {Rule::mlp_over_fewer,
     "FP8 in blocks: the tp of dense MLPs and shared experts is lowered to gcd(blocks, tp), without a word.",
     "", "_torch/models/modeling_deepseekv3.py: _compute_mlp_tp_size"},
    {Rule::layers_to_first_stages, "Layers left over by pp go one each to the first stages.", "",
     "mapping.py: Mapping.pp_layers"},
    {Rule::layers_fill_stages, "Every stage holds a layer.",
     "pp size cannot be larger than num_hidden_layers", "mapping.py: Mapping.pp_layers"},
};

}  // namespace

const EngineTable kTrtllmTable = {Engine::trtllm, "trtllm", kTrtllmVersions, kTrtllmRules};

}  // namespace assay
