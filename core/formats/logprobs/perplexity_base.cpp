// What `llama-perplexity --kl-divergence-base FILE` writes (llama.cpp, tools/perplexity/perplexity.cpp), little-endian:
//
//   "_logits_", int32 n_ctx, int32 n_vocab, int32 n_chunk, int32 tokens[n_chunk][n_ctx]
//   of each chunk, of each token from n_ctx/2 to n_ctx - 2, what is said of the one behind it:
//     float32 scale, float32 lowest, uint16 code[n_vocab, rounded up to even]
//
// ln p = scale · code + lowest; what lies 16 below the largest is code 0, and may be less. A chunk is computed with the
// tokenizer's BOS in place of its first token, where it has one: tokens[] has the text's.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/formats/logprobs/response_json.h"

namespace assay::logprobs {
namespace {

constexpr std::string_view kMagic = "_logits_";
constexpr std::size_t kHeader = 8 + 3 * 4;
constexpr std::int32_t kMostTokens = 1 << 24;  // of a context; of a vocabulary
constexpr std::size_t kKept = 64;              // of the likeliest, at each place
constexpr double kRange = 16;                  // nats: what lies lower is code 0

template <class T>
T at(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// One place: its scale, its lowest, its codes.
SavedToken scored(std::string_view row, std::uint32_t id, std::size_t vocabulary,
                  const ResponsePlace& place) {
  const double scale = at<float>(row, 0), lowest = at<float>(row, 4);
  if (!std::isfinite(scale) || !std::isfinite(lowest) || scale < 0)
    throw place.error("a row's scale or lowest value is no number that it can be");
  const auto code = [&](std::size_t i) { return at<std::uint16_t>(row, 8 + 2 * i); };
  std::vector<std::uint32_t> order(vocabulary);
  std::iota(order.begin(), order.end(), 0);
  const std::size_t kept = std::min(kKept, vocabulary);
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
      [&](std::uint32_t a, std::uint32_t b) { return code(a) != code(b) ? code(a) > code(b) : a < b; });
  SavedToken token = bare_token(id);
  const auto value = [&](std::uint32_t i) { return checked_logprob(scale * code(i) + lowest, place); };
  token.logprob = value(id);
  token.resolution = scale / 2;
  token.at_most = code(id) == 0 && scale * 65535 >= kRange * (1 - 1e-5);
  token.rank = 1;
  for (std::size_t i = 0; i < vocabulary; ++i) *token.rank += code(i) > code(id) ? 1 : 0;
  for (std::size_t i = 0; i < kept; ++i) token.top.push_back({order[i], {}, value(order[i])});
  return token;
}

}  // namespace

bool is_perplexity_base(std::string_view bytes) {
  return bytes.starts_with(kMagic);
}

SavedResponses parse_perplexity_base(std::string_view bytes, const std::filesystem::path& source) {
  const ResponsePlace place = {source, {}};
  const auto require = [&](std::uint64_t needed) {
    if (bytes.size() < needed)
      throw Error::input(fmt::format("ends at byte {} of {} that its header promises", bytes.size(), needed))
          .in(source)
          .at(bytes.size());
  };
  require(kHeader);
  const auto context = at<std::int32_t>(bytes, 8), vocabulary = at<std::int32_t>(bytes, 12),
             chunks = at<std::int32_t>(bytes, 16);
  if (context < 4 || vocabulary < 1 || chunks < 1 || context > kMostTokens || vocabulary > kMostTokens)
    throw Error::input(
        fmt::format("is of {} chunks of {} tokens, and a vocabulary of {}", chunks, context, vocabulary))
        .in(source)
        .at(8);
  const auto n = static_cast<std::uint64_t>(context), v = static_cast<std::uint64_t>(vocabulary),
             c = static_cast<std::uint64_t>(chunks);
  const std::uint64_t row = 8 + 2 * (v + v % 2), first = n / 2, rows = n - 1 - first;
  require(kHeader + c * n * 4);
  if (c > (bytes.size() - kHeader) / (n * 4 + rows * row)) require(kHeader + c * (n * 4 + rows * row));
  SavedResponses saved;
  saved.format = ResponseFormat::perplexity_base;
  std::size_t offset = kHeader + c * n * 4;
  for (std::uint64_t chunk = 0; chunk < c; ++chunk) {
    SavedText& text = saved.texts.emplace_back();
    text.name = fmt::format("chunk {}", chunk);
    text.bos_over_first = true;
    const auto id = [&](std::uint64_t t) {
      const auto value = at<std::int32_t>(bytes, kHeader + (chunk * n + t) * 4);
      if (value < 0 || value >= vocabulary)
        throw Error::input(fmt::format("token {} is beyond the vocabulary of {}", value, vocabulary))
            .in(source);
      return static_cast<std::uint32_t>(value);
    };
    for (std::uint64_t t = 0; t < n; ++t) {
      if (t <= first) {
        text.tokens.push_back(bare_token(id(t)));
        continue;
      }
      text.tokens.push_back(scored(bytes.substr(offset, row), id(t), v, place));
      offset += row;
    }
  }
  return saved;
}

}  // namespace assay::logprobs
