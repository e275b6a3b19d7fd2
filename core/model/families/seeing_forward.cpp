#include "core/model/families/seeing_forward.h"

#include "core/model/families/forward.h"
#include "core/model/families/kin_forward.h"
#include "core/model/families/mixture_forward.h"

namespace assay::families {
namespace {

constexpr ForwardClass kGlm4vTextClass = {
    .epsilon = 1e-5, .rope = {.context = 32768, .partial = true}, .interleaved = true};
constexpr ForwardClass kGlm4vMoeTextClass = {.epsilon = 1e-5,
                                             .rope = {.context = 65536, .partial = true, .part = 0.5}};
constexpr ForwardClass kGlmOcrClass = {
    .epsilon = 1e-5, .rope = {.context = 131072, .partial = true}, .interleaved = true};
constexpr ForwardClass kPaddleClass = {.epsilon = 1e-5, .rope = {.theta = 500000, .context = 131072}};
constexpr ForwardClass kOmniClass = {.rope = {.theta = 1e6, .context = 32768}};

}  // namespace

Hyperparameters forward_glm4v_text(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kGlm4vTextClass);
}
Hyperparameters forward_glm4v_moe_text(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kGlm4vMoeTextClass);
  read_groups(config, tree, true, h);
  return h;
}
Hyperparameters forward_glm_ocr(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kGlmOcrClass);
}
Hyperparameters forward_hunyuan_vl(ConfigReader& config, const ModuleTree& tree) {
  return forward_hunyuan(config, tree);
}
Hyperparameters forward_paddleocr_vl(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kPaddleClass);
}
Hyperparameters forward_qwen2_5_omni_text(ConfigReader& config, const ModuleTree& tree) {
  config.require(!config.flag("use_sliding_window", false),
                 "use_sliding_window is true: windows of Qwen2.5-Omni are not computed here");
  return read_forward(config, tree, kOmniClass);
}
Hyperparameters forward_qwen3_omni_moe_text(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kOmniClass);
  h.routing.renormalize = config.flag("norm_topk_prob", true);
  return h;
}

}  // namespace assay::families
