#include "core/formats/logprobs/response_json.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/system/text.h"

namespace assay::logprobs {
namespace {

// What vLLM, SGLang and assay serve write for minus infinity; llama-server writes the lowest float.
constexpr double kNever = -9999;
// A log-softmax in 16 bits may come out so far above 0.
constexpr double kAboveZero = 0.01;

}  // namespace

Error ResponsePlace::error(std::string what) const {
  return Error::input(name.empty() ? std::move(what) : fmt::format("{}: {}", name, what)).in(file);
}

const OrderedJson* member(const OrderedJson& value, std::string_view key) {
  if (!value.is_object()) return nullptr;
  for (const auto& [name, of] : value.get_ref<const OrderedJson::object_t&>())
    if (name == key) return of.is_null() ? nullptr : &of;
  return nullptr;
}

const OrderedJson* list_member(const OrderedJson& value, std::string_view key) {
  const OrderedJson* found = member(value, key);
  return found != nullptr && found->is_array() ? found : nullptr;
}

double checked_logprob(double value, const ResponsePlace& place) {
  if (std::isnan(value)) throw place.error("holds a NaN, which is no probability");
  if (value > kAboveZero)
    throw place.error(fmt::format("{} is no log-probability: it would be of a probability above 1", value));
  if (value <= kNever) return -std::numeric_limits<double>::infinity();
  return value;
}

double logprob_of(const OrderedJson& value, const ResponsePlace& place) {
  // Where Python's bare -Infinity is no JSON, it is written as a text.
  if (value == "-Infinity" || value == "-inf") return -std::numeric_limits<double>::infinity();
  if (!value.is_number()) throw place.error(fmt::format("a log-probability is {}", value.type_name()));
  return checked_logprob(value.get<double>(), place);
}

std::optional<double> logprob_or_null(const OrderedJson& value, const ResponsePlace& place) {
  if (value.is_null()) return std::nullopt;
  return logprob_of(value, place);
}

std::uint32_t token_id_of(const OrderedJson& value, const ResponsePlace& place) {
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0 ||
      value.get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max())
    throw place.error(fmt::format(
        "a token's id is {}", value.is_number() ? "no whole number that an id can be" : value.type_name()));
  return value.get<std::uint32_t>();
}

std::optional<std::uint32_t> token_id_of_text(std::string_view digits) {
  const auto id = parse_u64(digits);
  if (!id || *id > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(*id);
}

std::vector<std::uint32_t> token_ids_of(const OrderedJson& list, const ResponsePlace& place) {
  std::vector<std::uint32_t> ids;
  for (const OrderedJson& id : list) ids.push_back(token_id_of(id, place));
  return ids;
}

SavedToken bare_token(std::uint32_t id) {
  SavedToken token;
  token.id = id;
  return token;
}

}  // namespace assay::logprobs
