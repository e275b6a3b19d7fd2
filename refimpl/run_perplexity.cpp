#include "refimpl/run_perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/system/error.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "refimpl/engine/engine.h"
#include "refimpl/engine/scoring.h"
#include "refimpl/ops/sample.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostTextFile = 1ull << 30;

// KL(p ‖ q) of two rows of logits.
double divergence(std::span<const double> p, std::span<const double> q) {
  const double p_sum = log_sum_exp(p), q_sum = log_sum_exp(q);
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double log_p = p[i] - p_sum;
    if (std::exp(log_p) > 0) sum += std::exp(log_p) * (log_p - (q[i] - q_sum));
  }
  return sum;
}

// Adds what one window says, position by position, as many rows at once as fit.
class WindowLoss {
 public:
  WindowLoss(OpenModel& model, OpenModel* other, TextLoss& loss)
      : model_(model), other_(other), loss_(loss) {}

  void add(const TextWindow& window) {
    const std::size_t vocabulary = model_.model->vocabulary();
    TextScorer text(*model_.model, *model_.ops, window.tokens);
    std::optional<TextScorer> beside;
    if (other_ != nullptr) beside.emplace(*other_->model, *other_->ops, window.tokens);
    // The rows that predict a token that counts.
    const std::size_t first = window.first - 1, end = window.tokens.size() - 1;
    for (std::size_t at = 0; at < end;) {
      if (!reaches(text, at) || (beside && !reaches(*beside, at))) return;
      std::size_t rows = std::min(text.end(), end) - at;
      if (beside) rows = std::min(rows, beside->end() - at);
      if (at < first) {
        at += std::min(rows, first - at);
        continue;
      }
      rows = std::min(rows, rows_at_once(vocabulary));
      const std::vector<double> said = text.logits(at, rows);
      const std::vector<double> others = beside ? beside->logits(at, rows) : std::vector<double>();
      for (std::size_t i = 0; i < rows; ++i) {
        const auto row = [&](const std::vector<double>& all) {
          return std::span(all).subspan(i * vocabulary, vocabulary);
        };
        add_row(row(said), others.empty() ? std::span<const double>() : row(others),
                window.tokens[at + i + 1]);
      }
      at += rows;
    }
  }

 private:
  // Reads on until the position is in the chunk. A text whose frequencies follow its length begins with one
  // chunk that holds all of it.
  static bool reaches(TextScorer& text, std::size_t position) {
    while (text.end() <= position) {
      if (!text.read()) return false;
    }
    return !interrupted();
  }

  void add_row(std::span<const double> row, std::span<const double> other, TokenId next) {
    ++loss_.tokens;
    loss_.nats += log_sum_exp(row) - row[next];
    if (other.empty()) return;
    loss_.divergence += divergence(other, row);
    loss_.same_choice += argmax(row) == argmax(other) ? 1 : 0;
  }

  OpenModel& model_;
  OpenModel* other_;
  TextLoss& loss_;
};

std::size_t window_context(const OpenModel& model, const OpenModel* other, std::size_t asked) {
  std::size_t room = model.model->context();
  if (other != nullptr) room = std::min(room, other->model->context());
  if (asked > room)
    throw Error::usage(fmt::format("--context {} is more than the model's context of {}", asked, room));
  return asked == 0 ? room : asked;
}

}  // namespace

double TextLoss::perplexity() const {
  return std::exp(mean());
}

double log_sum_exp(std::span<const double> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - largest);
  return largest + std::log(sum);
}

TextLoss measure_loss(OpenModel& model, OpenModel* other, const std::string& file, WindowRule rule) {
  const std::string text = read_small_file(file, kMostTextFile);
  if (other != nullptr && other->model->vocabulary() != model.model->vocabulary())
    throw Error::input(fmt::format("the models' vocabularies differ: {} and {}", model.model->vocabulary(),
                                   other->model->vocabulary()));
  rule.context = window_context(model, other, rule.context);
  if (rule.kind == WindowRule::Kind::transformers && (rule.stride == 0 || rule.stride > rule.context))
    throw Error::usage(fmt::format("--stride takes a number from 1 to the window's {} tokens", rule.context));
  TextLoss loss;
  loss.against = other != nullptr;
  loss.context = rule.context;
  WindowLoss window_loss(model, other, loss);
  for_each_window(model.tokenizer(), text, rule, [&](const TextWindow& window) {
    window_loss.add(window);
    ++loss.windows;
    return !interrupted();
  });
  if (loss.tokens == 0 && !interrupted())
    throw Error::input("holds no two tokens to predict one from the other").in(file);
  return loss;
}

}  // namespace assay
