#include "kernels/model_compare/window_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/system/threads.h"

namespace assay {
namespace {

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}

void add(std::map<std::string, TapErrors>& all, const std::map<std::string, TapErrors>& more) {
  for (const auto& [name, errors] : more) {
    all[name].prefill.add(errors.prefill);
    all[name].decode.add(errors.decode);
  }
}

}  // namespace

void WindowComparison::compare(const TextWindow& window, std::size_t decode, bool drafts, bool last) {
  window_ = &window;
  text_ = {window.tokens, decode, drafts};
  last_ = last;
  KeptTaps kept(*reference_.ops, request_.most_kept);
  expected_ = read_states(*reference_.model, *reference_.ops, text_, Taps(kept));
  note_names(kept.names());
  note_experts(kept);
  prepare_runs();
  read(kept);
  if (!interrupted()) go_through_heads();
  runs_.clear();
  plain_.clear();
}

void WindowComparison::prepare_runs() {
  runs_.push_back({test_.model.get(), test_.ops.get(), false, &gathered_.free, {}});
  runs_.push_back({test_.model.get(), test_.ops.get(), true, &gathered_.local, {}});
  for (int order = 0; order < PlainOps::kOrders; ++order) {
    plain_.push_back(std::make_unique<PlainOps>(request_.test.arithmetic, request_.jobs, order, noises_));
    runs_.push_back({reference_.model.get(), plain_.back().get(), true, &gathered_.plain[order], {}});
  }
}

void WindowComparison::read(const KeptTaps& kept) {
  for (Run& run : runs_) {
    if (interrupted()) return;
    ComparedTaps::Settings settings = {
        .forced = run.forced, .prefill = text_.tokens.size() - text_.decode, .orders = {}};
    if (run.model == test_.model.get()) settings.orders = head_orders();
    ComparedTaps taps(*run.ops, kept, std::move(settings));
    run.states = read_states(*run.model, *run.ops, text_, Taps(taps));
    add(*run.errors, taps.errors());
    if (run.forced) continue;
    bare_reference_ = read_states(*reference_.model, *reference_.ops, text_, {});
    bare_test_ = read_states(*test_.model, *test_.ops, text_, {});
  }
}

// Checkpoints of one model may keep the rows of its projections in either order.
std::map<std::string, HeadOrder> WindowComparison::head_orders() const {
  std::map<std::string, HeadOrder> orders;
  const RopeLayout from = reference_.model->rope_layout();
  if (from == test_.model->rope_layout()) return orders;
  for (const AttentionGeometry& geometry : request_.reference.weights->tree().attention) {
    for (const std::uint64_t layer : geometry.layers) {
      for (const char* tap : {"q_proj", "k_proj", "q", "k"})
        orders[fmt::format("layers.{}.{}", layer, tap)] = {geometry.qk_head_dim, from};
    }
  }
  return orders;
}

void WindowComparison::go_through_heads() {
  for (const RowsOfHead& piece : head_rows(expected_, rows_compared(reference_.model->vocabulary()))) {
    if (interrupted()) return;
    compare_piece(piece);
  }
}

void WindowComparison::compare_piece(const RowsOfHead& piece) {
  const auto logits = [&](const LanguageModel& model, Ops& ops, const TextStates& states, const Taps& taps) {
    return ops.download(head_logits(model, ops, states, piece, taps));
  };
  KeptTaps kept(*reference_.ops, request_.most_kept);
  const std::vector<double> expected = logits(*reference_.model, *reference_.ops, expected_, Taps(kept));
  note_names(kept.names());
  std::vector<double> seen;
  for (Run& run : runs_) {
    ComparedTaps taps(
        *run.ops, kept,
        {.forced = false, .prefill = text_.tokens.size() - text_.decode, .first = piece.row, .orders = {}});
    std::vector<double> said = logits(*run.model, *run.ops, run.states, Taps(taps));
    if (&run == &runs_.front()) seen = std::move(said);
    add(*run.errors, taps.errors());
  }
  gathered_.bit_equal &= same_bits(expected, seen);
  gathered_.finite &= all_finite(expected) && all_finite(seen);
  gathered_.same_without_taps &=
      same_bits(expected, logits(*reference_.model, *reference_.ops, bare_reference_, {})) &&
      same_bits(seen, logits(*test_.model, *test_.ops, bare_test_, {}));
  tally(piece, expected, seen);
}

// Row i of the main model predicts token i + 1, row i of the prediction layer token i + 2.
void WindowComparison::tally(const RowsOfHead& piece, std::span<const double> expected,
                             std::span<const double> seen) {
  const std::size_t vocabulary = expected.size() / piece.count, all = text_.tokens.size();
  for (std::size_t i = 0; i < piece.count; ++i) {
    const std::size_t next = piece.row + i + (piece.draft ? 2 : 1);
    if (next < window_->first || (next >= all && !last_)) continue;
    (piece.draft ? gathered_.draft : gathered_.main)
        .add(expected.subspan(i * vocabulary, vocabulary), seen.subspan(i * vocabulary, vocabulary),
             next < all ? std::optional(text_.tokens[next]) : std::nullopt);
  }
}

void WindowComparison::note_experts(const KeptTaps& kept) {
  for (const std::string& name : kept.names()) {
    if (split_tap_name(name).kind != "router_weights") continue;
    const KeptTaps::Taken& taken = *kept.find(name);
    std::vector<bool>& used = gathered_.used[name];
    used.resize(taken.width);
    for (std::size_t i = 0; i < taken.values.size(); ++i)
      if (taken.values[i] != 0) used[i % taken.width] = true;
  }
}

// The prediction layer comes after the main model, its head.
void WindowComparison::note_names(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::find(gathered_.names.begin(), gathered_.names.end(), name) == gathered_.names.end())
      gathered_.names.push_back(name);
  }
  std::stable_partition(gathered_.names.begin(), gathered_.names.end(),
                        [](const std::string& name) { return first_token_of(name) == 0; });
}

}  // namespace assay
