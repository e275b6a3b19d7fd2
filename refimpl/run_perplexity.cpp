#include "refimpl/run_perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/error.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "refimpl/engine/engine.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostTextFile = 1ull << 30;

std::vector<std::string> paragraphs_of(const std::string& text) {
  std::vector<std::string> paragraphs;
  std::string current;
  const auto finish = [&] {
    if (!trim(current).empty()) paragraphs.emplace_back(trim(current));
    current.clear();
  };
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (trim(line).empty())
      finish();
    else
      current += fmt::format("{}{}", current.empty() ? "" : "\n", line);
    begin = end + 1;
  }
  finish();
  return paragraphs;
}

using Texts = std::vector<std::vector<TokenId>>;

Texts paragraphs(const Tokenizer& tokenizer, const std::string& text) {
  Texts texts;
  for (const std::string& paragraph : paragraphs_of(text)) {
    std::vector<TokenId> tokens = tokenizer.encode(paragraph, {.parse_special = false});
    if (tokenizer.bos() && (tokens.empty() || tokens.front() != *tokenizer.bos()))
      tokens.insert(tokens.begin(), *tokenizer.bos());
    if (tokenizer.eos() && tokens.back() != *tokenizer.eos()) tokens.push_back(*tokenizer.eos());
    texts.push_back(std::move(tokens));
  }
  return texts;
}

Texts windows(const Tokenizer& tokenizer, const std::string& text, std::size_t context) {
  std::vector<TokenId> tokens = tokenizer.encode(text, {.parse_special = false});
  const bool begins = tokenizer.bos() && !tokens.empty() && tokens.front() == *tokenizer.bos();
  Texts texts;
  for (std::size_t i = 0; i < tokens.size();) {
    std::vector<TokenId> window;
    if (begins && i != 0) window.push_back(*tokenizer.bos());
    const std::size_t count = std::min(context - window.size(), tokens.size() - i);
    window.insert(window.end(), tokens.begin() + static_cast<std::ptrdiff_t>(i),
                  tokens.begin() + static_cast<std::ptrdiff_t>(i + count));
    i += count;
    texts.push_back(std::move(window));
  }
  return texts;
}

std::vector<std::vector<double>> logits_of(OpenModel& model, const std::vector<TokenId>& tokens) {
  std::vector<std::vector<double>> rows(tokens.size());
  TextEngine(*model.model, *model.ops)
      .score(tokens, [&](std::size_t position, std::span<const double> logits) {
        rows[position].assign(logits.begin(), logits.end());
      });
  return rows;
}

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

TextLoss measure_loss(OpenModel& model, OpenModel* other, const std::string& file, bool by_paragraph) {
  const std::string text = read_small_file(file, kMostTextFile);
  const Tokenizer& tokenizer = model.tokenizer();
  const std::size_t context = model.model->context();
  if (other != nullptr && other->model->vocabulary() != model.model->vocabulary())
    throw Error::input(fmt::format("the models' vocabularies differ: {} and {}", model.model->vocabulary(),
                                   other->model->vocabulary()));
  TextLoss loss;
  loss.against = other != nullptr;
  for (const std::vector<TokenId>& tokens :
       by_paragraph ? paragraphs(tokenizer, text) : windows(tokenizer, text, context)) {
    const auto rows = logits_of(model, tokens);
    const auto others = other == nullptr ? rows : logits_of(*other, tokens);
    if (interrupted()) break;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      ++loss.tokens;
      loss.nats += log_sum_exp(rows[i]) - rows[i][tokens[i + 1]];
      if (!loss.against) continue;
      loss.divergence += divergence(others[i], rows[i]);
      loss.same_choice += argmax(rows[i]) == argmax(others[i]) ? 1 : 0;
    }
  }
  if (loss.tokens == 0 && !interrupted())
    throw Error::input("holds no two tokens to predict one from the other").in(file);
  return loss;
}

}  // namespace assay
