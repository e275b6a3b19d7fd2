// Decoders whose layers a token passes several times (Nanbeige 4.2, IQuest-Coder Loop): make_decoder()'s passes. Sources:
// llama.cpp's nanbeige.cpp, vLLM 0.32's iquest_loopcoder.py.
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

// No stage of a pipeline holds the layers of one range: each would be passed again. So it is no StagedModel.
class Looped final : public LanguageModel {
 public:
  explicit Looped(std::unique_ptr<LanguageModel> decoder) : decoder_(std::move(decoder)) {}

  std::size_t vocabulary() const override { return decoder_->vocabulary(); }
  std::size_t context() const override { return decoder_->context(); }
  std::vector<CacheWidth> cache_widths() const override { return decoder_->cache_widths(); }
  RopeLayout rope_layout() const override { return decoder_->rope_layout(); }
  bool cache_serves(std::size_t length, std::size_t other) const override {
    return decoder_->cache_serves(length, other);
  }
  Matrix hidden(const Batch& batch, Ops& ops, const Taps& taps) const override {
    return decoder_->hidden(batch, ops, taps);
  }
  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override {
    return decoder_->logits(hidden, ops, taps);
  }

 private:
  std::unique_ptr<LanguageModel> decoder_;
};

// Of a tree with a geometry for each pass (looped_decoders.cpp).
std::unique_ptr<LanguageModel> make_nanbeige(const Weights& weights, const ModelOptions& options) {
  ConfigReader config(weights.config(), "Nanbeige");
  DecoderForm form = {.passes = weights.tree().attention.size()};
  form.norm_between = !config.flag("skip_loop_final_norm", false);
  return std::make_unique<Looped>(make_kin_as(form, weights, options));
}
std::unique_ptr<LanguageModel> make_loop_coder(const Weights& weights, const ModelOptions& options) {
  const DecoderForm form = {.attention = {.gated_passes = true}, .passes = weights.tree().attention.size()};
  return std::make_unique<Looped>(make_kin_as(form, weights, options));
}

constexpr std::string_view kNanbeige[] = {"nanbeige"}, kLoopCoder[] = {"iquestloopcoder"};
constexpr auto kNanbeigeUsed = kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias",
                                         "mlp_bias", "num_loops", "skip_loop_final_norm"});
constexpr auto kLoopCoderUsed = kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias",
                                          "mlp_bias", "loop_num", "loop_window_size"});
constexpr FixedKey kLoopCoderFixed[] = {{"clip_qkv", "null"}, {"use_sliding_window", "false"}};
constexpr std::string_view kLoopCoderIdle[] = {"sliding_window", "max_window_layers"};

constexpr ModelRule kLoopedRules[] = {
    {kNanbeige, {}, {kNanbeigeUsed}, make_nanbeige},
    {kLoopCoder, {}, {kLoopCoderUsed, kLoopCoderIdle, kLoopCoderFixed}, make_loop_coder}};

}  // namespace

std::span<const ModelRule> looped_rules() {
  return kLoopedRules;
}

}  // namespace assay
