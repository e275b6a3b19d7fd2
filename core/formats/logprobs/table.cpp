// Ids and log-probabilities as scripts write them: a trainer's, a rollout's.
//
//   text,id,logprob                 CSV with a header; `text` or `sequence` tells texts apart, and may be left out
//   0,17,-0.25
//
//   {"ids": [1, 17, 5], "logprobs": [null, -0.25, -1.5]}              JSONL: a text a line
//   {"prompt_ids": [1], "ids": [17, 5], "logprobs": [-0.25, -1.5]}    what stood before, and has none
//   {"id": 17, "logprob": -0.25}                                      or a token a line
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "core/formats/logprobs/response_json.h"
#include "core/system/text.h"

namespace assay::logprobs {
namespace {

constexpr std::array<std::string_view, 6> kId = {"id", "token_id", "token", "input_id", "token_ids", "tok"};
constexpr std::array<std::string_view, 6> kLogprob = {"logprob",       "log_prob", "logp",
                                                      "token_logprob", "lp",       "logprobs"};
constexpr std::array<std::string_view, 6> kText = {"text", "sequence", "seq", "sample", "prompt", "request"};
constexpr std::array<std::string_view, 5> kIdLists = {"ids", "token_ids", "input_ids", "tokens",
                                                      "response_ids"};
constexpr std::array<std::string_view, 8> kLogprobLists = {
    "logprobs", "log_probs", "token_logprobs",    "logps",
    "lps",      "logprob",   "rollout_log_probs", "old_log_probs"};
constexpr std::array<std::string_view, 3> kPromptLists = {"prompt_ids", "prompt_token_ids", "prompt_tokens"};

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <std::size_t N>
const OrderedJson* first_list(const OrderedJson& value, const std::array<std::string_view, N>& names) {
  for (const std::string_view name : names)
    if (const OrderedJson* found = list_member(value, name)) return found;
  return nullptr;
}

// Fields of a line; quotes as in RFC 4180, no field goes over lines.
std::vector<std::string> csv_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

std::optional<double> csv_logprob(std::string_view field, const ResponsePlace& place) {
  field = trim(field);
  if (field.empty() || field == "null" || field == "None") return std::nullopt;
  double value = 0;
  const auto [end, fault] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (fault == std::errc::result_out_of_range && field.starts_with('-') && end == field.data() + field.size())
    value = -std::numeric_limits<double>::infinity();
  else if (fault != std::errc() || end != field.data() + field.size())
    throw place.error(fmt::format("\"{}\" is no log-probability", escape_for_terminal(field.substr(0, 40))));
  return checked_logprob(value, place);
}

struct CsvColumns {
  std::optional<std::size_t> text, id, logprob;
};

CsvColumns columns_of(std::string_view header, const std::filesystem::path& source) {
  CsvColumns columns;
  const std::vector<std::string> names = csv_fields(header);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = trim(names[i]);
    if (!columns.id && is_one_of(name, kId)) columns.id = i;
    if (!columns.logprob && is_one_of(name, kLogprob)) columns.logprob = i;
    if (!columns.text && is_one_of(name, kText)) columns.text = i;
  }
  if (!columns.id || !columns.logprob)
    throw Error::input(
        "is in no format of responses that we know, and no CSV with the columns id and logprob")
        .in(source)
        .remedy("docs/logprobs.md says what is read");
  return columns;
}

void add_row(const std::vector<std::string>& fields, const CsvColumns& columns, const ResponsePlace& place,
             SavedResponses& saved) {
  const std::size_t most = std::max({*columns.id, *columns.logprob, columns.text.value_or(0)});
  if (fields.size() <= most)
    throw place.error(fmt::format("has {} fields, and column {} is wanted", fields.size(), most + 1));
  const std::string name = columns.text ? std::string(trim(fields[*columns.text])) : "0";
  if (saved.texts.empty() || saved.texts.back().name != name) saved.texts.emplace_back().name = name;
  SavedToken token;
  const std::string_view id = trim(fields[*columns.id]);
  token.id = token_id_of_text(id);
  if (!token.id)
    throw place.error(fmt::format("\"{}\" is no token's id", escape_for_terminal(id.substr(0, 40))));
  token.logprob = csv_logprob(fields[*columns.logprob], place);
  saved.texts.back().tokens.push_back(std::move(token));
}

// What has a probability from its first token on has something before it that is not told.
void note_beginnings(SavedResponses& saved) {
  for (SavedText& text : saved.texts)
    if (!text.tokens.empty() && text.tokens.front().logprob) text.unknown_before = 1;
}

void add_token_line(const OrderedJson& line, const ResponsePlace& place, SavedResponses& saved) {
  std::string name = "0";
  for (const std::string_view key : kText)
    if (const OrderedJson* given = member(line, key))
      name = given->is_string() ? given->get<std::string>() : given->dump();
  if (saved.texts.empty() || saved.texts.back().name != name) saved.texts.emplace_back().name = name;
  SavedToken token = bare_token(token_id_of(*member(line, "id"), place));
  if (const OrderedJson* logprob = member(line, "logprob")) token.logprob = logprob_of(*logprob, place);
  SavedText& text = saved.texts.back();
  if (text.tokens.empty() && token.logprob) text.unknown_before = 1;
  text.tokens.push_back(std::move(token));
}

}  // namespace

SavedResponses parse_csv(std::string_view text, const std::filesystem::path& source) {
  SavedResponses saved;
  std::optional<CsvColumns> columns;
  for (std::size_t at = 0, line = 1; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view row = text.substr(at, end - at);
    at = end + 1;
    if (trim(row).empty()) continue;
    if (!columns) {
      columns = columns_of(row, source);
      continue;
    }
    add_row(csv_fields(row), *columns, {source, fmt::format("line {}", line)}, saved);
  }
  note_beginnings(saved);
  return saved;
}

bool read_plain_object(const OrderedJson& response, const ResponsePlace& place, SavedResponses& saved) {
  if (member(response, "id") != nullptr && response.find("logprob") != response.end() &&
      list_member(response, "logprob") == nullptr) {
    add_token_line(response, place, saved);
    return true;
  }
  const OrderedJson* ids = first_list(response, kIdLists);
  const OrderedJson* logprobs = first_list(response, kLogprobLists);
  if (ids == nullptr || logprobs == nullptr) return false;
  const OrderedJson* prompt = first_list(response, kPromptLists);
  if (logprobs->size() > ids->size() || (prompt != nullptr && logprobs->size() < ids->size()))
    throw place.error(fmt::format("{} log-probabilities of {} ids", logprobs->size(), ids->size()));
  SavedText text;
  text.name = place.name;
  if (prompt != nullptr)
    for (const std::uint32_t id : token_ids_of(*prompt, place)) text.tokens.push_back(bare_token(id));
  // Fewer of them than ids: they are of the last ones, the others being the prompt.
  const std::size_t without = ids->size() - logprobs->size();
  for (std::size_t i = 0; i < ids->size(); ++i) {
    SavedToken token = bare_token(token_id_of((*ids)[i], place));
    if (i >= without) token.logprob = logprob_or_null((*logprobs)[i - without], place);
    token.generated = prompt != nullptr;
    text.tokens.push_back(std::move(token));
  }
  if (!text.tokens.empty() && text.tokens.front().logprob) text.unknown_before = 1;
  saved.texts.push_back(std::move(text));
  return true;
}

}  // namespace assay::logprobs
