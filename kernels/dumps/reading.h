// How a tap of two dumps is read so that the same thing is compared: ranks joined, axes found, tokens
// aligned.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/dumps/align.h"
#include "kernels/dumps/dump.h"
#include "kernels/dumps/token_ids.h"

namespace assay::dumps {

struct TapPair {
  const Tap *ref = nullptr, *test = nullptr;
};

struct Reading {
  JoinPlan ref_join, test_join;
  AxisPlan ref_axes, test_axes;
};

// REF and TEST with the taps of one name.
struct PairedDumps {
  const Dump &ref, &test;
  std::vector<TapPair> pairs;
  std::uint64_t tokens = 0;  // likely_tokens(), or 0
};

// The token count that most of REF's taps have.
std::uint64_t likely_tokens(const PairedDumps& dumps);
// nullopt: no joining and no reading gives vectors of one width.
std::optional<Reading> find_reading(const PairedDumps& dumps, const TapPair& pair);
// As one dump alone would be read: the first axis longer than 1 counts tokens.
Activations load_plainly(const Dump& dump, const Tap& tap);

// By token ids (and positions) where both dumps have them, else by the first tap, the embedding where it is
// there. Tokens that an attention mask strikes out match nothing.
TokenAlignment align_tokens(const PairedDumps& dumps);

}  // namespace assay::dumps
