// SGLang's rules, read from the sources of the versions below (their wheels on PyPI; paths under sglang/srt, those of
// the newest that has the rule). sglang#3345 and #3491 are where people met them.
#include "paramcount/engine_rules.h"

namespace assay {
namespace {

constexpr EngineVersion kS0410 = {{0, 4, 10}}, kS056 = {{0, 5, 6}}, kS0515 = {{0, 5, 15}},
                        kS0523 = {{0, 5, 23}};
constexpr EngineVersion kSglangVersions[] = {kS0410, kS056, kS0515, kS0523};

// By the file of sglang/srt/models that has the check; deepseek_v2.py serves all of DeepSeek's kin, qwen2_moe.py
// Qwen3-Next and 3.5, too. Mixtral and gpt-oss have none.
constexpr std::string_view kSglangChecked0410[] = {"deepseek_v2",    "deepseek_v3", "glm4_moe",
                                                   "hunyuan_v1_moe", "qwen2_moe",   "qwen3_moe"};
constexpr std::string_view kSglangChecked056[] = {
    "deepseek_v2", "deepseek_v3", "deepseek_v32", "glm4_moe",   "hunyuan_v1_moe", "longcat_flash",
    "minimax_m2",  "qwen2_moe",   "qwen3_moe",    "qwen3_next", "qwen3_vl_moe"};
constexpr std::string_view kSglangChecked0515[] = {
    "deepseek_v2", "deepseek_v3",   "deepseek_v32",   "deepseek_v4",   "glm_moe_dsa", "kimi_k25",
    "glm4_moe",    "glm4_moe_lite", "hunyuan_v1_moe", "longcat_flash", "minimax_m2",  "qwen2_moe",
    "qwen3_moe",   "qwen3_next",    "qwen3_5_moe",    "qwen3_vl_moe",  "cohere2_moe", "exaone_moe",
    "lfm2_moe",    "mimo_v2_flash", "step3p5",        "afmoe"};
constexpr std::string_view kSglangChecked0523[] = {
    "deepseek_v2", "deepseek_v3",   "deepseek_v32",   "deepseek_v4",   "glm_moe_dsa",  "kimi_k25",
    "glm4_moe",    "glm4_moe_lite", "hunyuan_v1_moe", "longcat_flash", "minimax_m2",   "minimax_m3",
    "qwen2_moe",   "qwen3_moe",     "qwen3_next",     "qwen3_5_moe",   "qwen3_vl_moe", "cohere2_moe",
    "exaone_moe",  "lfm2_moe",      "mimo_v2_flash",  "step3p5",       "afmoe"};
constexpr std::string_view kSglangGptOss[] = {"gpt_oss"};
// Architectures whose towers are cut; the first of them has no way not to.
constexpr std::string_view kSglangTowers[] = {
    "Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration",
    "Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration"};
constexpr std::span<const std::string_view> kSglangDataTowers = std::span(kSglangTowers).last(3);
constexpr std::string_view kSglangMoreRanks =
    "Tensor parallel size {tp} is greater than the number of experts {experts}.";
constexpr std::string_view kSglangMixtures = "models/qwen2_moe.py, deepseek_v2.py and the others' mixtures";

constexpr EngineRule kSglangRules[] = {
    {Rule::heads, "tp divides the attention heads.", "assert self.total_num_heads % tp_size == 0",
     "models/llama.py: LlamaAttention"},
    {Rule::key_heads, "Key and value heads are a multiple of tp, or tp one of theirs.",
     "assert {larger} % {smaller} == 0", "models/llama.py: LlamaAttention"},
    {Rule::key_heads_repeated,
     "With fewer key and value heads than ranks, neighbouring ranks hold the same one.", "",
     "layers/linear.py: QKVParallelLinear, num_kv_head_replicas"},
    {Rule::latent_everywhere, "The latent of MLA is cached whole on every rank.", "",
     "models/deepseek_v2.py: DeepseekV2AttentionMLA"},
    {Rule::mamba_heads, "tp divides the heads of Mamba-2.",
     "Tensor parallel world size must divide num heads.", "layers/attention/mamba/mamba.py: MambaMixer2",
     kS056},
    {Rule::mamba_groups, "tp divides the groups of Mamba-2; a single group is repeated on every rank.",
     "If tensor parallel world size does not divide num_groups, then num_groups must equal 1.",
     "layers/attention/mamba/mamba.py: MambaMixer2", kS056},
    {Rule::delta_heads, "tp divides the key and the value heads of Gated DeltaNet.",
     "{number} is not divisible by {tp}", "configs/mamba_utils.py: Mamba2StateShape.create", kS056},
    {Rule::experts_at_most_tp, "--tp (tp × dp here) is no larger than the number of experts.",
     kSglangMoreRanks, kSglangMixtures, kS0410, kS056, kSglangChecked0410},
    {Rule::experts_at_most_tp, "--tp (tp × dp here) is no larger than the number of experts.",
     kSglangMoreRanks, kSglangMixtures, kS056, kS0515, kSglangChecked056},
    {Rule::experts_at_most_tp, "--tp (tp × dp here) is no larger than the number of experts.",
     kSglangMoreRanks, kSglangMixtures, kS0515, kS0523, kSglangChecked0515},
    {Rule::experts_at_most_tp,
     "--tp (tp × dp here) is no larger than the number of experts.",
     kSglangMoreRanks,
     kSglangMixtures,
     kS0523,
     {},
     kSglangChecked0523},
    {Rule::experts_divide, "ep divides the experts.", "assert num_experts % self.moe_ep_size == 0",
     "layers/moe/fused_moe_triton/layer.py: FusedMoE", kS0410, kS056},
    {Rule::experts_divide, "ep divides the experts.",
     "assert (num_experts - num_fused_shared_experts) % self.moe_ep_size == 0",
     "layers/moe/fused_moe_triton/layer.py: FusedMoE", kS056, kS0515},
    {Rule::experts_divide, "ep divides the experts.",
     "assert (num_experts - num_shared_slots) % self.moe_ep_size == 0",
     "layers/moe/fused_moe_triton/layer.py: FusedMoE", kS0515, kS0523},
    {Rule::experts_divide, "ep divides the experts.", "assert self._num_global_routed % storage_ep_size == 0",
     "layers/moe/fused_moe_triton/layer.py: FusedMoE", kS0523},
    {Rule::experts_needed, "Expert parallel needs a model with experts.", "", "server_args.py"},
    {Rule::widths, "tp divides every width that is cut.", "{number} is not divisible by {tp}",
     "distributed/utils.py: ensure_divisibility"},
    {Rule::expert_widths, "The ranks of an expert divide its width.",
     "assert intermediate_size % self.moe_tp_size == 0", "layers/moe/fused_moe_triton/layer.py: FusedMoE"},
    {Rule::fp8_inputs, "FP8 in blocks: the inputs of a row-parallel rank are whole blocks.",
     "Weight input_size_per_partition = {share} is not divisible by weight quantization block_k = {block}.",
     "layers/quantization/fp8.py: validate_block_quant_shapes"},
    {Rule::fp8_outputs,
     "FP8 in blocks: the outputs of a single column-parallel layer are whole blocks on each rank.",
     "Weight output_partition_size = {share} is not divisible by weight quantization block_n = {block}.",
     "layers/quantization/fp8.py: validate_block_quant_shapes"},
    {Rule::fp8_merged,
     "FP8 in blocks: members of merged layers (gate_up, qkv) are whole blocks, uncut ones, too.",
     "Weight output_partition_size = {share} is not divisible by weight quantization block_n = {block}.",
     "layers/quantization/fp8.py: validate_block_quant_shapes"},
    {Rule::fp8_experts, "FP8 in blocks: a rank's part of an expert is whole blocks (AITER pads instead).",
     "The {which} = {share} is not divisible by weight quantization {side} = {block}.",
     "layers/quantization/fp8.py: Fp8MoEMethod.create_weights"},
    {Rule::int4_groups, "INT4: no group of inputs under one scale is cut.",
     "The input size is not aligned with the quantized weight shape. This can be caused by too large tensor "
     "parallel "
     "size.",
     "layers/quantization/awq/schemes/awq_linear.py, gptq/schemes/gptq_linear.py"},
    {Rule::fp4_groups, "FP4: no group of inputs under one scale is cut.", "",
     "layers/quantization/modelopt_quant.py"},
    {Rule::marlin_tiles,
     "INT4: a rank's matrix is whole tiles of Marlin's kernels, 128 inputs by 64 outputs.",
     "Weight {side}_size_per_partition = {share} is not divisible by {tile}. Consider reducing "
     "tensor_parallel_size or "
     "running with --quantization gptq.",
     "layers/quantization/marlin_utils.py: verify_marlin_supports_shape"},
    {Rule::mxfp4_whole_blocks,
     "MXFP4 experts are dealt out in whole blocks of 32: ceil(blocks / ranks) each, the last rank less.",
     "",
     "models/gpt_oss.py: _load_mxfp4_experts_weights",
     kS056,
     {},
     kSglangGptOss},
    {Rule::bnb_unknown, "bitsandbytes is not among the methods known.",
     "Unknown quantization method: bitsandbytes.", "layers/quantization/__init__.py", kS056, kS0515},
    {Rule::bnb_uncut, "Checkpoints of bitsandbytes, in 4 bits or 8, are loaded with tp=1 alone.",
     "Prequant BitsAndBytes models with TP is not supported.Please try with PP.",
     "model_loader/loader.py: BitsAndBytesModelLoader"},
    {Rule::bnb_int8_experts, "Checkpoints of bitsandbytes in 8 bits have no experts.", "NotImplementedError",
     "layers/quantization/bitsandbytes.py: BitsAndBytesMoEMethod", kS0523},
    {Rule::tower_cut,
     "Vision towers are cut like text: attention by heads, what widens by outputs, what narrows by inputs; "
     "patches, "
     "positions and norms are whole.",
     "",
     "layers/attention/vision.py: VisionAttention; the models' own classes",
     kS0523,
     {},
     kSglangTowers},
    {Rule::tower_heads,
     "tp divides the heads of a tower that is cut.",
     "{number} is not divisible by {tp}",
     "layers/attention/vision.py: VisionAttention",
     kS0523,
     {},
     kSglangTowers},
    {Rule::tower_widths,
     "tp divides every width of a tower that is cut.",
     "{number} is not divisible by {tp}",
     "distributed/utils.py: divide, as the linear layers call it",
     kS0523,
     {},
     kSglangTowers},
    {Rule::tower_data,
     "--mm-enable-dp-encoder keeps towers whole on each rank.",
     "",
     "models/qwen2_5_vl.py, qwen3_vl.py: use_data_parallel",
     kS0523,
     {},
     kSglangDataTowers},
    {Rule::tower_on_every_stage,
     "Every stage of a pipeline holds the tower.",
     "",
     "models/qwen2_vl.py, qwen2_5_vl.py, qwen3_vl.py: visual",
     kS0523,
     {},
     kSglangTowers},
    {Rule::vocabulary_padded, "The vocabulary is padded to a multiple of 64, then cut evenly.", "",
     "layers/vocab_parallel_embedding.py: DEFAULT_VOCAB_PADDING_SIZE"},
    {Rule::layers_to_last_stage, "Layers left over by pp all go to the last stage.", "",
     "distributed/utils.py: get_pp_indices", kS0410, kS056},
    {Rule::layers_to_last_stages, "Layers left over by pp go one each to the last stages.", "",
     "distributed/utils.py: get_pp_indices", kS056},
    {Rule::layers_fill_stages, "Every stage holds a layer.", "", "distributed/utils.py: get_pp_indices"},
};

}  // namespace

const EngineTable kSglangTable = {Engine::sglang, "sglang", kSglangVersions, kSglangRules};

}  // namespace assay
