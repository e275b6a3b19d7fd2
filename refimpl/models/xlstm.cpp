// xLSTM (arXiv 2503.13427): in every layer a matrix LSTM (matrix_lstm.cpp) and a gated MLP; logits capped softly. Source:
// modeling_xlstm.py of transformers 5.19, in the form that goes token by token: what takes a prompt in chunks there has products of
// bfloat16 (autocast_kernel_dtype), whatever the weights are.
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_xlstm(const Weights& weights, const ModelOptions& options) {
  require_all_heads(weights);
  ConfigReader config(weights.config(), "xLSTM");
  DecoderForm form;
  form.recurrent.gate_cap = config.real("gate_soft_cap", 15, 1e-6, 1e9);
  form.recurrent.divisor_epsilon = config.real("eps", 1e-6, 0, 1);
  return make_kin_as(form, weights, options);
}

constexpr std::string_view kXlstmFamilies[] = {"xlstm"};
constexpr std::string_view kXlstmUsed[] = {"vocab_size",      "hidden_size",
                                           "embedding_dim",   "num_hidden_layers",
                                           "num_blocks",      "num_heads",
                                           "norm_eps",        "eps",
                                           "qk_dim_factor",   "v_dim_factor",
                                           "ffn_proj_factor", "ffn_round_up_to_multiple_of",
                                           "gate_soft_cap",   "output_logit_soft_cap",
                                           "weight_mode"};
// How a prompt is cut, which kernels take it, and what no model has otherwise.
constexpr std::string_view kXlstmIdle[] = {
    "add_out_norm",          "autocast_kernel_dtype",   "chunk_size",  "chunkwise_kernel",
    "inference_state_dtype", "max_inference_chunksize", "mode",        "norm_reduction_force_float32",
    "return_last_states",    "sequence_kernel",         "step_kernel", "tie_word_embeddings"};
constexpr FixedKey kXlstmFixed[] = {{"use_bias", "false"}};

}  // namespace

const ModelRule kXlstmRule = {kXlstmFamilies, {}, {kXlstmUsed, kXlstmIdle, kXlstmFixed}, make_xlstm};

}  // namespace assay
