#include "kernels/compare/given_text.h"

#include "core/system/error.h"
#include "core/system/text.h"
#include "refimpl/tokenizers/load.h"
#include "refimpl/tokenizers/token_list.h"

namespace assay {
namespace {

constexpr std::size_t kMostTextFile = 16u << 20;

// A tokenizer is not always there, and not always needed.
std::vector<TokenId> own_tokens(std::size_t vocabulary, std::size_t count) {
  std::vector<TokenId> tokens;
  for (std::uint64_t i = 0; i < count && vocabulary > 0; ++i)
    tokens.push_back(static_cast<TokenId>((i * 2654435761u + 1) % vocabulary));  // Knuth's multiplier
  return tokens;
}

}  // namespace

GivenText given_text(const TextSource& s, const Weights& weights, const LanguageModel& model,
                     std::size_t own) {
  const int given = (s.prompt ? 1 : 0) + (s.tokens ? 1 : 0) + (s.file.empty() ? 0 : 1);
  if (given > 1) throw Error::usage("-p, --tokens and --file exclude one another");
  if (s.tokens) return {parse_tokens(*s.tokens), {}, "--tokens"};
  if (given == 0)
    return {own_tokens(model.vocabulary(), own), {}, "ids from all over the vocabulary (no text was given)"};
  const std::string written = s.prompt ? *s.prompt : read_small_file(s.file, kMostTextFile);
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(weights.checkpoint(), model.vocabulary());
  GivenText text = {tokenizer->encode(written), {}, s.prompt ? "-p" : s.file};
  if (text.tokens.empty()) throw Error::usage(text.about + " holds no token");
  if (tokenizer->bos() && text.tokens.front() == *tokenizer->bos()) text.bos = tokenizer->bos();
  return text;
}

}  // namespace assay
