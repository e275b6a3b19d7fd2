// A text read by a model, as a server would: most of it at once, the end token by token; and, where the
// checkpoint has a layer for multi-token prediction, that layer after each step.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "refimpl/models/model.h"

namespace assay {

struct TextReading {
  std::span<const TokenId> tokens;
  std::size_t decode = 0;  // the last so many tokens are read one by one
  bool draft = false;      // the prediction layer too
};
struct TextLogits {
  std::vector<double> main;  // of every position
  // Row i is of token i + 1 and what the model said of token i, and predicts token i + 2.
  std::vector<double> draft;
};
TextLogits read_text(const LanguageModel& model, Ops& ops, const TextReading& text, const Taps& taps);

// What the head is given of a text, step by step, and what it is given by the prediction layer: for logits to
// be taken of a few positions at a time, each as wide as the vocabulary.
struct TextStates {
  std::vector<Matrix> main, draft;  // of each step; a step may have none
};
TextStates read_states(const LanguageModel& model, Ops& ops, const TextReading& text, const Taps& taps);

// A few rows of these, and what the head, or the prediction layer's, says of them.
struct RowsOfHead {
  bool draft;
  std::size_t step, first, count;  // rows of a step
  std::size_t row;                 // the first of them, over all steps
};
// `at_once`: rows. Where computations are held against each other, rows_compared(vocabulary) of them: one row is
// there six times, as a matrix and as doubles, of the truth, of what is tested and of what it is set to.
std::size_t rows_compared(std::size_t vocabulary);
std::vector<RowsOfHead> head_rows(const TextStates& states, std::size_t at_once);
Matrix head_logits(const LanguageModel& model, Ops& ops, const TextStates& states, const RowsOfHead& rows,
                   const Taps& taps);

// Of "layers.3.attn_out": the place "3" and the kind "attn_out"; of "mtp.0.attn_out" the place "mtp.0". What
// belongs to no layer has no place.
struct TapName {
  std::string place, kind;
};
TapName split_tap_name(std::string_view name);
// The token that the first row of a tap is of: the prediction layer's rows begin with the second.
std::size_t first_token_of(std::string_view tap);

}  // namespace assay
