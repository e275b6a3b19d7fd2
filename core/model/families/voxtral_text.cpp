// Voxtral Realtime's language model: a Mistral whose MLPs are told how late it may answer, by two matrices a layer that
// scale their input.
#include "core/model/families/all_2026.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr std::uint64_t kDelayRank = 32;  // VoxtralRealtimeTextAdaRmsNorm: no key of the config says it

void describe_voxtral_text(ConfigReader& config, ModuleTree& tree) {
  // What VoxtralRealtimeConfig gives a text_config that is silent.
  const LlamaKin kin = {.sizes = {.vocabulary = 131072,
                                  .hidden = 3072,
                                  .intermediate = 9216,
                                  .layers = 26,
                                  .heads = 32,
                                  .kv_heads = 8,
                                  .head_dim = 128,
                                  .tied = true},
                        .bias_keys = "",
                        .windows = true,
                        .window = 8192,
                        .windowed = [](std::uint64_t) { return true; }};
  describe_kin(config, tree, kin);
  const Quantity hidden("hidden_size", tree.hidden_size);
  for (Module& module : tree.modules) {
    if (module.repeat.over != Repeat::Over::layers) continue;
    Linear down{"ada_rms_norm.linear1", hidden, kDelayRank, Role::residual_mix, Part::norm};
    Linear up{"ada_rms_norm.linear2", kDelayRank, hidden, Role::residual_mix, Part::norm};
    down.quantizable = up.quantizable = false;
    add_linear(module, down);
    add_linear(module, up);
  }
}

constexpr std::string_view kVoxtralTextTypes[] = {"voxtral_realtime_text"};

}  // namespace

const Family kVoxtralText = {"voxtral_realtime_text",
                             "Voxtral Realtime's language model",
                             {},
                             kVoxtralTextTypes,
                             {},
                             describe_voxtral_text,
                             nullptr};

}  // namespace assay::families
