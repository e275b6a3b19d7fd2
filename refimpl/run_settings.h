// What `assay run` was asked to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/system/command_line.h"
#include "refimpl/chat_options.h"
#include "refimpl/ops/kernel_set.h"
#include "refimpl/run_windows.h"
#include "refimpl/sampling/sampling_params.h"

namespace assay {

// Who guesses ahead (run_speculation.h).
struct SpeculationSettings {
  std::string source, model, tree, rule;  // lookup, draft or mtp; as given
  std::size_t tokens = 0;
  bool wanted() const { return !source.empty() || !model.empty(); }
};

// Over how many processes or threads (run_ranks.h).
struct RankSettings {
  std::size_t tp = 1, pp = 1, ep = 1, dp = 1;
  std::string sum = "tree";
  std::size_t micro_batches = 2, limit_seconds = 600;
  bool threads = false;
  bool wanted() const { return tp > 1 || pp > 1 || ep > 1 || dp > 1; }
};

// Prompt and text in two processes (run_handoff.h).
struct HandoffSettings {
  std::string to, from, first, draft, key_file;
  double timeout = 60;
  std::uint64_t senders = 1;
  std::string ranks;  // of the other side, as given: "4", "2x3" (run_handoff_places.h)
  bool whole = false;
  bool wanted() const { return !to.empty() || !from.empty(); }
};

struct RunSettings {
  CommonOptions common;
  std::string model;
  std::vector<std::string> prompts, token_lists;
  std::optional<std::size_t> most;  // -n; not given: 64, or 0 where only numbers are asked for
  SamplingParams sampling;
  std::vector<std::string> logit_bias, stop;  // as given: "42=-3.5"
  std::string grammar, json_schema;
  std::optional<double> temperature;  // as given
  std::string precision = "f32", kernels = "reference", variant, mla = "absorbed", experts = "sparse";
  std::string logits, dump, taps, perplexity, against;
  std::string cache_dir, cache_bytes,
      cache_memory;                   // blocks of caches on disk, and how much of it; before it
  std::string kv_cache;               // --kv-cache, as given
  std::string isa;                    // --isa, as given: with vectors of another width bits may be others
  std::size_t log_probabilities = 0;  // --logprobs
  WindowRule windows;                 // of --perplexity
  ChatOptions chat;
  SpeculationSettings speculation;
  RankSettings ranks;
  HandoffSettings handoff;
  bool interactive = false, claims = false, ignore_eos = false;
  KernelSelector select;

  bool has_text() const { return !prompts.empty() || !chat.messages.empty(); }
  // Is a tokenizer asked for, and its text shown?
  bool needs_text() const { return has_text() || !stop.empty() || !grammar.empty() || !json_schema.empty(); }
  bool only_numbers() const { return !logits.empty() || !dump.empty(); }
  std::size_t tokens_to_make() const { return most.value_or(only_numbers() ? 0 : 64); }
};

}  // namespace assay
