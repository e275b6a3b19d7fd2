// How llama.cpp keeps MiniMax-01 and M1 (conversion/minimax.py): lightning attention in seven layers of eight, whose decays
// are computed, and softmax in the eighth; all residuals are scaled by one number.
#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/gguf_own_keys.h"

namespace assay::families {
namespace lightning_in_gguf {
namespace {

using Form = GgufOwnKey::Form;
using Keys = GgufRules::Keys;

constexpr GgufOwnKey kKeys[] = {
    {.key = "residual_scale", .form = Form::f32, .config = "layernorm_full_attention_alpha"},
    {.key = "rope.dimension_count", .config = "rotary_dim"}};
constexpr GgufOwnName kNames[] = {{"self_attn.qkv_proj.weight", "attn_qkv"},
                                  {"self_attn.output_gate.weight", "attn_gate"},
                                  {"self_attn.norm.weight", "attn_norm_2"},
                                  {"self_attn.out_proj.weight", "attn_output"}};
constexpr GgufRules kMinimax = {
    .base = {.family = "minimax", .architecture = "minimax-01", .hf_class = "MiniMaxText01ForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kKeys,
    .names = kNames,
    .tokenizer = GgufRules::Tokenizer::minimax_01,
    .back = back::minimax_01};

constexpr const GgufRules* kGroup[] = {&kMinimax};

}  // namespace
}  // namespace lightning_in_gguf

GgufGroup gguf_lightning() {
  return lightning_in_gguf::kGroup;
}

}  // namespace assay::families
