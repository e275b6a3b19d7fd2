// What `assay run` was asked to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/system/command_line.h"
#include "refimpl/chat_options.h"
#include "refimpl/ops/kernel_set.h"
#include "refimpl/ops/sample.h"
#include "refimpl/run_windows.h"

namespace assay {

struct RunSettings {
  CommonOptions common;
  std::string model;
  std::vector<std::string> prompts, token_lists;
  std::optional<std::size_t> most;  // -n; not given: 64, or 0 where only numbers are asked for
  SampleRule sampling;
  std::optional<double> temperature;  // as given
  std::uint64_t seed = 0;
  std::string precision = "f32", kernels = "reference", variant, mla = "absorbed", experts = "sparse";
  std::string logits, dump, taps, perplexity, against;
  std::size_t log_probabilities = 0;  // --logprobs
  WindowRule windows;                 // of --perplexity
  ChatOptions chat;
  bool interactive = false, speculate = false, claims = false, ignore_eos = false;
  KernelSelector select;

  bool has_text() const { return !prompts.empty() || !chat.messages.empty(); }
  bool only_numbers() const { return !logits.empty() || !dump.empty(); }
  std::size_t tokens_to_make() const { return most.value_or(only_numbers() ? 0 : 64); }
};

}  // namespace assay
