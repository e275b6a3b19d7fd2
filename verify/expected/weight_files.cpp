#include "verify/expected/weight_files.h"

#include <algorithm>
#include <array>

namespace assay {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// `text` in any case, `lower_case` in lower case.
bool is_same(std::string_view text, std::string_view lower_case) {
  return std::equal(text.begin(), text.end(), lower_case.begin(), lower_case.end(),
                    [](char a, char b) { return lower(a) == b; });
}

}  // namespace

std::string_view base_of(std::string_view name) {
  return name.substr(name.rfind('/') + 1);  // npos + 1: all of it
}

bool may_hold_weights(std::string_view name) {
  static constexpr std::array kEndings = {".safetensors", ".gguf",     ".ggml",   ".bin",       ".pt",
                                          ".pth",         ".ckpt",     ".pkl",    ".onnx",      ".onnx_data",
                                          ".onnx.data",   ".msgpack",  ".h5",     ".npz",       ".npy",
                                          ".nemo",        ".ot",       ".keras",  ".tflite",    ".mlmodel",
                                          ".distcp",      ".pdparams", ".params", ".llamafile", ".engine"};
  const std::string_view base = base_of(name);
  return std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view end) {
    return base.size() >= end.size() && is_same(base.substr(base.size() - end.size()), end);
  });
}

bool is_training_state(std::string_view name) {
  static constexpr std::array kBeginnings = {"training_args", "optimizer", "scheduler", "rng_state",
                                             "scaler"};
  const std::string_view base = base_of(name);
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view begin) { return is_same(base.substr(0, begin.size()), begin); });
}

bool is_shard_index_name(std::string_view name) {
  const auto index = name.rfind(".index.");  // "….index.json", or with a variant between the two
  return name.ends_with(".json") && index != name.npos && may_hold_weights(name.substr(0, index));
}

}  // namespace assay
