// The keys below the architecture of a GGUF ("llama.block_count") and the names that config.json has for them:
// one table, which GGUFs are written by (gguf_hyperparameters.cpp) and read by (gguf_config.cpp), and by which
// it is judged what becomes of a key when the model is run, or written with a config.json. Every one is
//
//   read     under the name that config.json has for it, by the module tree or the forward rule;
//   neutral  of a value that changes nothing: a scale of 1, a cap of 0, no clamp;
//   idle     of no effect on logits, whatever it says;
//   an error that names it, where another value changes numbers that are not computed, or not told on;
//   or unread: a note.
//
// Keys: gguf-py/gguf/constants.py, set_gguf_parameters() of convert_hf_to_gguf.py; what values mean:
// load_hparams of llama.cpp. The test GgufKeys holds the table against the keys of the gguf package
// (data/make_gguf_keys.py).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/model/config.h"
#include "core/model/known_keys.h"

namespace assay {

enum class GgufKeyFate : std::uint8_t { read, changes_numbers, idle, unknown };

struct GgufKey {
  std::string_view key;          // "attention.head_count"
  std::string_view config = {};  // "num_attention_heads", "rope_scaling.factor"; "": config.json has no such
  GgufKeyFate fate = GgufKeyFate::read;
  // The module tree reads it, of every family; else it is read where the family uses its name of config.json.
  bool by_tree = false;
  // changes_numbers: what it may say where the family does not use it; flags count as 0 and 1. `judged`: other
  // keys decide, too (gguf_judge.cpp).
  std::array<double, 3> neutral = {};
  bool judged = false;
  // How it enters a config: a whole number, or a list of one that all layers share; any single value; by code
  // of its own (gguf_config.cpp) or not at all.
  enum class Reading : std::uint8_t { none, whole, value } reading = Reading::none;
  // How it is written, and of which families, in the order of the table; `factor` times what config.json says.
  enum class Writing : std::uint8_t { none, u32, f32, flag, text } writing = Writing::none;
  enum class Of : std::uint8_t { every, widths, expert_width, latent } of = Of::every;
  bool of_latent_too = false;
  double factor = 1;
};
std::span<const GgufKey> gguf_key_table();
const GgufKey* find_gguf_key(std::string_view key);  // the first of the name; nullptr: not in the table
bool is_of_other_layers(std::string_view key);       // "ssm.conv_kernel": of kinds that no family here has

// Of a key without its architecture: "logit_scale".
GgufKeyFate fate_of_gguf_key(std::string_view key);

// {arch}.expert_gating_func: llama.cpp's llama_expert_gating_func_type.
inline constexpr std::uint64_t kGgufSoftmaxGating = 1, kGgufSigmoidGating = 2, kGgufSqrtSoftplusGating = 4;

// `checkpoint` is a GGUF, `config` what ModelConfig::from_gguf() makes of it, `keys` those of a config.json
// that are computed or told on. Throws Error::input for a key whose value changes numbers and is not among
// them: "llama.logit_scale is 0.0625, " and `fault`.
void require_gguf_keys(const Checkpoint& checkpoint, const ModelConfig& config, const ConfigKeys& keys,
                       std::string_view fault = "which is not computed here");
// The unread ones, in order.
std::vector<std::string> unread_gguf_keys(const Checkpoint& checkpoint, const ModelConfig& config,
                                          const ConfigKeys& keys);

}  // namespace assay
