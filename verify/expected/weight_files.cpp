#include "verify/expected/weight_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace assay {
namespace {

std::string lower_base(std::string_view name) {
  const auto slash = name.rfind('/');
  std::string base(slash == name.npos ? name : name.substr(slash + 1));
  std::transform(base.begin(), base.end(), base.begin(), [](unsigned char c) { return std::tolower(c); });
  return base;
}

}  // namespace

bool may_hold_weights(std::string_view name) {
  static constexpr std::array kEndings = {".safetensors", ".gguf",     ".ggml",   ".bin",       ".pt",
                                          ".pth",         ".ckpt",     ".pkl",    ".onnx",      ".onnx_data",
                                          ".onnx.data",   ".msgpack",  ".h5",     ".npz",       ".npy",
                                          ".nemo",        ".ot",       ".keras",  ".tflite",    ".mlmodel",
                                          ".distcp",      ".pdparams", ".params", ".llamafile", ".engine"};
  const std::string base = lower_base(name);
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view end) { return base.ends_with(end); });
}

bool is_training_state(std::string_view name) {
  static constexpr std::array kBeginnings = {"training_args", "optimizer", "scheduler", "rng_state",
                                             "scaler"};
  const std::string base = lower_base(name);
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view begin) { return base.starts_with(begin); });
}

bool is_shard_index_name(std::string_view name) {
  const auto index = name.rfind(".index.");  // "….index.json", or with a variant between the two
  return name.ends_with(".json") && index != name.npos && may_hold_weights(name.substr(0, index));
}

}  // namespace assay
