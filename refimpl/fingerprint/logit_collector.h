// A table of log-probabilities, contexts × tokens, out of a server by whichever of three ways it gives them:
//
//   whole lists     every token's, beside one that is chosen
//   biased lists    logit_bias lifts some tokens above all others: the list of the likeliest is of these, one of which, the same in
//                   every list, they are told against
//   forced tokens   logit_bias chooses one token, whose own probability is told as the model has it, without the bias
//
//   LogitCollector collector(endpoint, contexts, vocabulary, limits);
//   if (!collector.choose_way().empty()) …             // it gives none of them: why
//   collector.extend(64, 64, told);                    // at least so many contexts and tokens, as far as there are
//   DenseMatrix table = collector.table();             // each row's constant is unknown
#pragma once

#include <functional>
#include <map>

#include "refimpl/fingerprint/dense_matrix.h"
#include "refimpl/fingerprint/logit_endpoint.h"

namespace assay {

enum class LogitWay : std::uint8_t { whole_lists, biased_lists, forced_tokens };
std::string_view in_words(LogitWay way);

class LogitCollector {
 public:
  using Contexts = std::function<PromptSent(std::size_t index)>;
  using Told = std::function<void(std::size_t entries)>;

  // `vocabulary`: where it could be found. `most_tokens`: columns that are kept of whole lists.
  LogitCollector(LogitEndpoint& endpoint, Contexts contexts, std::optional<std::size_t> vocabulary,
                 std::size_t most_tokens);

  std::string choose_way();
  LogitWay way() const { return way_; }
  // Tokens that this way can tell of: of whole lists, all at once.
  std::size_t tokens_there_are() const;

  // Returns early where the user interrupts. Throws Error::input where the server refuses what it took before.
  void extend(std::size_t contexts, std::size_t tokens, const Told& told);
  DenseMatrix table() const;
  // The largest difference where some of it is asked again.
  double asked_again();

 private:
  struct Group {
    std::vector<std::pair<TokenNumber, double>> biases;
    std::map<std::string, std::size_t> columns;  // by the tokens' names, found in the first answer
    std::size_t rows_done = 0;
  };
  using Values = std::vector<std::pair<std::size_t, double>>;  // column, what is told of it

  void find_width(const PromptSent& prompt);
  std::string choose_by_bias(const PromptSent& prompt);
  std::string choose_reference(const PromptSent& prompt);
  void add_groups(std::size_t tokens);
  TokenNumber token(std::size_t i) const;
  void fill(Group& group, std::size_t contexts, const Told& told);
  NextTokens ask(const Group& group, std::span<const std::size_t> rows);
  void name_columns(Group& group, const logprobs::SavedToken& first);
  Values values_of(const Group& group, const logprobs::SavedToken& answer) const;
  void add_rows(std::size_t count);

  LogitEndpoint& endpoint_;
  Contexts contexts_;
  std::optional<std::size_t> vocabulary_;
  std::size_t most_tokens_;
  LogitWay way_ = LogitWay::whole_lists;
  std::size_t width_ = 0;      // of a list
  bool asked_whole_ = false;   // a list as long as the vocabulary is not refused
  std::size_t reference_ = 0;  // of biased lists: token(reference_), and its name
  std::string reference_name_;
  std::vector<Group> groups_;
  std::size_t columns_ = 0, next_context_ = 0, refused_ = 0;
  std::vector<PromptSent> prompts_;        // of each row
  std::vector<std::vector<double>> rows_;  // NaN: not told
};

}  // namespace assay
