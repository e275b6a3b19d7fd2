// Which format a file of responses is, by its content.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/formats/logprobs/response_json.h"
#include "core/system/file.h"
#include "core/system/text.h"

namespace assay::logprobs {
namespace {

constexpr std::uint64_t kLargestJson = 1ull << 30, kLargestFile = 2ull << 30;
constexpr JsonLimits kJsonLimits = {kLargestJson, 32};

void read_response(const OrderedJson& response, const ResponsePlace& place, SavedResponses& saved) {
  static constexpr std::array<ResponseReader, 5> kReaders = {read_sglang, read_llama_server, read_vllm,
                                                             read_openai, read_plain_object};
  for (const ResponseReader read : kReaders)
    if (read(response, place, saved)) return;
  if (const OrderedJson* error = member(response, "error"))
    throw place.error(
        fmt::format("is a server's error: {}", escape_for_terminal(error->dump().substr(0, 200))));
  throw place.error("is no response with log-probabilities that we know")
      .remedy("docs/logprobs.md says what is read");
}

void read_document(const OrderedJson& document, const ResponsePlace& place, SavedResponses& saved) {
  if (!document.is_array()) return read_response(document, place, saved);
  for (std::size_t i = 0; i < document.size(); ++i) {
    ResponsePlace own = place;
    own.name += fmt::format("{}response {}", own.name.empty() ? "" : ", ", i);
    read_response(document[i], own, saved);
  }
}

// More than one document, each on a line of its own.
bool is_jsonl(std::string_view text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || trim(text.substr(end)).empty()) return false;
  return OrderedJson::accept(text.substr(0, end));
}

void read_lines(std::string_view text, const std::filesystem::path& source, SavedResponses& saved) {
  for (std::size_t at = 0, line = 1; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view row = trim(text.substr(at, end - at));
    const std::size_t begin = at;
    at = end + 1;
    if (row.empty()) continue;
    const ResponsePlace place = {source, fmt::format("line {}", line)};
    try {
      read_document(parse_ordered_json(row, source, kJsonLimits), place, saved);
    } catch (const Error& error) {
      if (!error.offset()) throw;
      throw Error::input(fmt::format("line {}: {}", line, error.message()))
          .in(source)
          .at(begin + *error.offset());
    }
  }
}

// Values written with few decimals are known no better than these: half a step of the last one.
void note_decimals(SavedResponses& saved) {
  constexpr int kMostDecimals = 6;
  constexpr std::size_t kEnough = 8;
  int decimals = 0;
  std::size_t values = 0;
  for (const SavedText& text : saved.texts) {
    for (const SavedToken& token : text.tokens) {
      if (!token.logprob || !std::isfinite(*token.logprob) || *token.logprob == 0) continue;
      ++values;
      const auto off = [&](int digits) {
        const double scaled = *token.logprob * std::pow(10, digits);
        return std::abs(scaled - std::round(scaled)) > 1e-9 * std::abs(scaled);
      };
      while (decimals <= kMostDecimals && off(decimals)) ++decimals;
      if (decimals > kMostDecimals) return;
    }
  }
  if (values < kEnough) return;
  for (SavedText& text : saved.texts)
    for (SavedToken& token : text.tokens)
      if (token.logprob) token.resolution = std::max(token.resolution, 0.5 * std::pow(10, -decimals));
}

}  // namespace

std::string_view name(ResponseFormat format) {
  switch (format) {
    case ResponseFormat::vllm: return "vLLM";
    case ResponseFormat::sglang: return "SGLang";
    case ResponseFormat::llama_server: return "llama-server";
    case ResponseFormat::openai: return "OpenAI";
    case ResponseFormat::perplexity_base: return "llama-perplexity --kl-divergence-base";
    case ResponseFormat::table: break;
  }
  return "ids and logprobs";
}

SavedResponses parse_responses(std::string_view bytes, const std::filesystem::path& source) {
  if (is_perplexity_base(bytes)) return parse_perplexity_base(bytes, source);
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  const std::string_view text = trim(bytes);
  if (text.empty()) throw Error::input("is empty").in(source);
  SavedResponses saved;
  if (text.front() != '{' && text.front() != '[')
    saved = parse_csv(bytes, source);
  else if (is_jsonl(text))
    read_lines(text, source, saved);
  else
    read_document(parse_ordered_json(bytes, source, kJsonLimits), {source, {}}, saved);
  if (saved.texts.empty()) throw Error::input("holds no responses").in(source);
  for (std::size_t i = 0; i < saved.texts.size(); ++i)
    if (saved.texts[i].name.empty()) saved.texts[i].name = fmt::format("response {}", i);
  note_decimals(saved);
  return saved;
}

SavedResponses read_responses(const std::filesystem::path& path) {
  return parse_responses(read_small_file(path, kLargestFile), path);
}

}  // namespace assay::logprobs
