// vLLM's rules, read from the sources of the versions below (their sdists on PyPI; paths are those of the newest that
// has the rule). 0.33.0 serves issue by issue what older ones refused: vllm#17569, #48173, #55867.
#include "paramcount/engine_rules.h"

namespace assay {
namespace {

constexpr EngineVersion kV0110 = {{0, 11, 0}}, kV0202 = {{0, 20, 2}}, kV0251 = {{0, 25, 1}},
                        kV0300 = {{0, 30, 0}}, kV0330 = {{0, 33, 0}};
constexpr EngineVersion kVllmVersions[] = {kV0110, kV0202, kV0251, kV0300, kV0330};

// The models whose mixture refuses more ranks than experts, by the file of vllm/model_executor/models that does.
// Mixtral, DeepSeek and gpt-oss have no such check.
constexpr std::string_view kCheckedIn0110[] = {"ernie4_5_moe", "hunyuan_v1_moe", "qwen2_moe", "qwen3_moe",
                                               "qwen3_next"};
constexpr std::string_view kCheckedIn0202[] = {
    "ernie4_5_moe",  "exaone_moe",   "hunyuan_v1_moe", "hy_v3",     "lfm2_moe",
    "mimo_v2_flash", "minimax_m2",   "qwen2_moe",      "qwen3_moe", "qwen3_next",
    "qwen3_5_moe",   "qwen3_vl_moe", "step3p5"};
constexpr std::string_view kCheckedIn0251[] = {"cohere2_moe", "ernie4_5_moe", "exaone_moe", "hunyuan_v1_moe",
                                               "hy_v3",       "laguna",       "lfm2_moe",   "mimo_v2_flash",
                                               "minimax_m2",  "qwen2_moe",    "qwen3_moe",  "qwen3_next",
                                               "qwen3_5_moe", "qwen3_vl_moe", "step3p5"};
constexpr std::string_view kCheckedIn0300[] = {
    "cohere2_moe", "ernie4_5_moe", "exaone_moe", "hy_v3",      "laguna",      "lfm2_moe",     "mimo_v2_flash",
    "minimax_m2",  "qwen2_moe",    "qwen3_moe",  "qwen3_next", "qwen3_5_moe", "qwen3_vl_moe", "step3p5"};
constexpr std::string_view kVllmGptOss[] = {"gpt_oss"};
// Architectures whose towers are cut; those that refuse heads that tp does not divide; that need not cut their tower.
constexpr std::string_view kVllmTowers[] = {
    "Qwen2VLForConditionalGeneration",  "Qwen2_5_VLForConditionalGeneration",
    "Qwen3VLForConditionalGeneration",  "Qwen3VLMoeForConditionalGeneration",
    "Qwen3_5ForConditionalGeneration",  "Qwen3_5MoeForConditionalGeneration",
    "Glm4vForConditionalGeneration",    "Glm4vMoeForConditionalGeneration",
    "Gemma3ForConditionalGeneration",   "PaliGemmaForConditionalGeneration",
    "Mistral3ForConditionalGeneration", "MiniMaxM3SparseForConditionalGeneration",
    "Llama4ForConditionalGeneration",   "InternVLChatModel",
    "KimiK25ForConditionalGeneration",  "KimiK3ForConditionalGeneration"};
constexpr std::span<const std::string_view> kVllmDividedTowers = std::span(kVllmTowers).first(12);
constexpr std::string_view kVllmLlama4Towers[] = {"Llama4ForConditionalGeneration"},
                           kVllmInternTowers[] = {"InternVLChatModel"},
                           kVllmKimiTowers[] = {"KimiK25ForConditionalGeneration",
                                                "KimiK3ForConditionalGeneration"};
constexpr std::string_view kVllmDataTowers[] = {"Qwen2VLForConditionalGeneration",
                                                "Qwen2_5_VLForConditionalGeneration",
                                                "Qwen3VLForConditionalGeneration",
                                                "Qwen3VLMoeForConditionalGeneration",
                                                "Qwen3_5ForConditionalGeneration",
                                                "Qwen3_5MoeForConditionalGeneration",
                                                "Glm4vForConditionalGeneration",
                                                "Glm4vMoeForConditionalGeneration",
                                                "MiniMaxM3SparseForConditionalGeneration",
                                                "Llama4ForConditionalGeneration",
                                                "InternVLChatModel",
                                                "KimiK25ForConditionalGeneration",
                                                "KimiK3ForConditionalGeneration"};
constexpr std::string_view kMoreRanksThanExperts =
    "Tensor parallel size {tp} is greater than the number of experts {experts}.";

constexpr EngineRule kVllmRules[] = {
    {Rule::heads, "tp divides the attention heads.",
     "Total number of attention heads ({heads}) must be divisible by tensor parallel size ({tp}).",
     "config/model.py: verify_with_parallel_config"},
    {Rule::key_heads, "Key and value heads are a multiple of tp, or tp one of theirs.",
     "assert {larger} % {smaller} == 0", "model_executor/models/llama.py: LlamaAttention"},
    {Rule::key_heads_repeated,
     "With fewer key and value heads than ranks, neighbouring ranks hold the same one.", "",
     "model_executor/layers/linear.py: QKVParallelLinear, num_kv_head_replicas"},
    {Rule::latent_everywhere, "The latent of MLA is cached whole on every rank.", "",
     "model_executor/models/deepseek_v2.py: DeepseekV2MLAAttention"},
    {Rule::mamba_heads, "tp divides the heads of Mamba-2.",
     "Tensor parallel world size must divide num heads.",
     "model_executor/layers/mamba/mamba_mixer2.py: MambaMixer2"},
    {Rule::mamba_groups, "tp divides the groups of Mamba-2; a single group is repeated on every rank.",
     "If tensor parallel world size does not divide num_groups, then num_groups must equal 1.",
     "model_executor/layers/mamba/mamba_mixer2.py: MambaMixer2"},
    {Rule::delta_heads, "tp divides the key and the value heads of Gated DeltaNet.",
     "{number} is not divisible by {tp}",
     "model_executor/layers/mamba/mamba_utils.py: gated_delta_net_state_shape"},
    {Rule::kda_heads, "tp divides the heads of KDA.", "assert self.num_heads % self.tp_size == 0",
     "model_executor/layers/mamba/gdn/kimi_gdn_linear_attn.py"},
    {Rule::experts_at_most_tp, "tp is no larger than the number of experts.", kMoreRanksThanExperts,
     "model_executor/models/qwen3_moe.py and the others' mixtures", kV0110, kV0202, kCheckedIn0110},
    {Rule::experts_at_most_tp, "tp is no larger than the number of experts.", kMoreRanksThanExperts,
     "model_executor/models/qwen3_moe.py and the others' mixtures", kV0202, kV0251, kCheckedIn0202},
    {Rule::experts_at_most_tp, "tp is no larger than the number of experts.", kMoreRanksThanExperts,
     "model_executor/models/qwen3_moe.py and the others' mixtures", kV0251, kV0300, kCheckedIn0251},
    {Rule::experts_at_most_tp,
     "tp is no larger than the number of experts.",
     kMoreRanksThanExperts,
     "model_executor/models/qwen3_moe.py and the others' mixtures",
     kV0300,
     {},
     kCheckedIn0300},
    {Rule::experts_at_most_ep, "Every rank of an expert-parallel group holds an expert.", "",
     "model_executor/layers/fused_moe/expert_map_manager.py: determine_expert_map"},
    {Rule::experts_uneven, "Where ep does not divide the experts, the first ranks hold one more.", "",
     "model_executor/layers/fused_moe/expert_map_manager.py: determine_expert_map"},
    {Rule::experts_needed, "Expert parallel needs a model with experts.",
     "Number of experts in the model must be greater than 0 when expert parallelism is enabled.",
     "config/model.py: _verify_with_expert_parallelism"},
    {Rule::experts_over_all_ranks,
     "--enable-expert-parallel deals experts over all tp × dp ranks, and each is whole on its rank.", "",
     "model_executor/layers/fused_moe/config.py: FusedMoEParallelConfig.make"},
    {Rule::widths, "tp divides every width that is cut.", "{number} is not divisible by {tp}",
     "distributed/utils.py: ensure_divisibility"},
    {Rule::expert_widths, "The ranks of an expert divide its width.",
     "assert self.intermediate_size % tp_size == 0",
     "model_executor/layers/fused_moe/config.py: FusedMoEConfig.__post_init__"},
    {Rule::fp8_inputs, "FP8 in blocks: the inputs of a row-parallel rank are whole blocks.",
     "Weight input_size_per_partition = {share} is not divisible by weight quantization block_k = {block}.",
     "model_executor/layers/quantization/utils/fp8_utils.py: validate_fp8_block_shape"},
    {Rule::fp8_outputs,
     "FP8 in blocks: the outputs of a single column-parallel layer are whole blocks on each rank.",
     "Weight output_partition_size = {share} is not divisible by weight quantization block_n = {block}.",
     "model_executor/layers/quantization/utils/fp8_utils.py: validate_fp8_block_shape"},
    {Rule::fp8_merged_but_last,
     "FP8 in blocks: members of merged layers (gate_up, qkv) are whole blocks; uncut, the last one need not "
     "be.",
     "Weight output_partition_size = {share} is not divisible by weight quantization block_n = {block}.",
     "model_executor/layers/quantization/utils/fp8_utils.py: validate_fp8_block_shape", kV0110, kV0202},
    {Rule::fp8_merged_tolerated,
     "FP8 in blocks: members of merged layers (gate_up, qkv) may end inside a block.", "",
     "model_executor/layers/linear.py: _maybe_allow_fp8_block_shape_mismatch", kV0202},
    {Rule::fp8_experts,
     "FP8 in blocks: a rank's part of an expert is whole blocks, where they cannot be refined.",
     "The {which} = {share} is not divisible by weight quantization {side} = {block}.",
     "model_executor/layers/quantization/utils/fp8_utils.py: validate_fp8_block_shape_moe"},
    {Rule::fp8_experts_refined,
     "FP8 in blocks: where a rank's part of an expert is no whole number of them, scales are repeated over "
     "blocks of "
     "gcd(block_n, block_k, width / tp, hidden_size), if that is 32 or more; Triton kernels only.",
     "FP8 MoE block scales refined from {from} to {to} to fit the TP-sharded intermediate size {share}.",
     "model_executor/layers/fused_moe/oracle/fp8.py: refine_fp8_moe_block_shape", kV0300},
    {Rule::int4_groups, "INT4: no group of inputs under one scale is cut.",
     "The input size is not aligned with the quantized weight shape. This can be caused by too large tensor "
     "parallel "
     "size.",
     "model_executor/layers/quantization/auto_awq.py (AWQ; GPTQ says it otherwise)"},
    {Rule::fp4_groups, "FP4: no group of inputs under one scale is cut.", "",
     "model_executor/layers/quantization/modelopt.py"},
    {Rule::marlin_tiles,
     "INT4: a rank's matrix is whole tiles of Marlin's kernels, 128 inputs by 64 outputs.",
     "Weight {side}_size_per_partition = {share} is not divisible by {tile}. Consider reducing "
     "tensor_parallel_size or "
     "running with --quantization gptq.",
     "model_executor/layers/quantization/utils/marlin_utils.py: verify_marlin_supports_shape", kV0110,
     kV0202},
    {Rule::marlin_padded, "INT4: matrices are padded with zeros to whole tiles of Marlin's kernels.", "",
     "model_executor/layers/quantization/utils/marlin_utils.py: marlin_padded_nk", kV0251},
    {Rule::mxfp4_whole_blocks,
     "MXFP4 experts are dealt out in whole blocks of 32: ceil(blocks / ranks) each, the last rank less.",
     "",
     "model_executor/models/gpt_oss.py: per_rank_intermediate_size_block",
     {},
     {},
     kVllmGptOss},
    {Rule::bnb_plugin, "bitsandbytes is read with vllm-bnb-plugin (since 0.28), not by vLLM alone.",
     "Unknown quantization method: bitsandbytes.", "config/model.py: _verify_quantization", kV0300},
    {Rule::bnb_uncut, "Checkpoints of bitsandbytes, in 4 bits or 8, are loaded with tp=1 alone.",
     "Prequant BitsAndBytes models with tensor parallelism is not supported. Please try with pipeline "
     "parallelism.",
     "model_executor/model_loader/bitsandbytes_loader.py; since 0.28 that of vllm-bnb-plugin"},
    {Rule::bnb_int8_experts, "Checkpoints of bitsandbytes in 8 bits have no experts.",
     "Prequant BitsAndBytes 8bit models with FusedMoE is not supported yet.",
     "model_executor/model_loader/bitsandbytes_loader.py", kV0110, kV0300},
    {Rule::bnb_int8_experts, "Checkpoints of bitsandbytes in 8 bits have no experts.",
     "Prequant BitsAndBytes 8bit models with RoutedExperts is not supported yet.",
     "bitsandbytes_loader.py of vllm-bnb-plugin", kV0300},
    {Rule::tower_cut,
     "Vision towers are cut like text: attention by heads, what widens by outputs, what narrows by inputs; "
     "patches, "
     "positions and norms are whole. All of it on the first stage.",
     "",
     "model_executor/models/vision.py: is_vit_use_data_parallel; the models' own classes",
     kV0330,
     {},
     kVllmTowers},
    {Rule::tower_heads,
     "tp divides the heads of a tower that is cut.",
     "{number} is not divisible by {tp}",
     "distributed/utils.py: divide, as the towers' attention calls it",
     kV0330,
     {},
     kVllmDividedTowers},
    {Rule::tower_heads,
     "tp divides the heads of a tower that is cut.",
     "assert self.num_heads % self.tp_size == 0",
     "model_executor/models/mllama4.py: Llama4VisionAttention",
     kV0330,
     {},
     kVllmLlama4Towers},
    {Rule::tower_widths,
     "tp divides every width of a tower that is cut.",
     "{number} is not divisible by {tp}",
     "distributed/utils.py: divide, as ColumnParallelLinear and RowParallelLinear call it",
     kV0330,
     {},
     kVllmTowers},
    {Rule::tower_whole,
     "Where tp does not divide a tower's heads each rank holds all of it.",
     "The number of vision attention heads is not divisible by the tensor parallel size. Falling back to "
     "data "
     "parallelism for the vision encoder.",
     "model_executor/models/vision.py: is_vit_use_data_parallel",
     kV0330,
     {},
     kVllmKimiTowers},
    {Rule::tower_attention_whole,
     "Where tp does not divide a tower's heads each rank holds all of its attention.",
     "",
     "model_executor/models/intern_vit.py: InternParallelAttention",
     kV0330,
     {},
     kVllmInternTowers},
    {Rule::tower_data,
     "--mm-encoder-tp-mode data keeps towers whole on each rank.",
     "",
     "config/model.py: supports_multimodal_encoder_tp_data",
     kV0330,
     {},
     kVllmDataTowers},
    {Rule::vocabulary_padded, "The vocabulary is padded to a multiple of 64, then cut evenly.", "",
     "model_executor/layers/vocab_parallel_embedding.py: DEFAULT_VOCAB_PADDING_SIZE"},
    {Rule::layers_to_middle,
     "Layers left over by pp go one each to the stages before the last, from the back.", "",
     "distributed/utils.py: get_pp_indices"},
    {Rule::layers_fill_stages, "Every stage holds a layer.", "", "distributed/utils.py: get_pp_indices"},
};

}  // namespace

const EngineTable kVllmTable = {Engine::vllm, "vllm", kVllmVersions, kVllmRules};

}  // namespace assay
