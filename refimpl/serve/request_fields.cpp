#include "refimpl/serve/request_fields.h"

#include <fmt/format.h>

#include <cmath>

#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::size_t kShownName = 60;

}  // namespace

Error field_error(std::string_view field, std::string_view what) {
  return Error::input(std::string(what)).in(std::string(field));
}

RequestFields::RequestFields(const ParsedJson& document, std::string prefix)
    : document_(document), prefix_(std::move(prefix)) {
  if (document.is_object()) return;
  const std::string name = prefix_.empty() ? "" : prefix_.substr(0, prefix_.size() - 1);
  throw field_error(name, "has to be a JSON object");
}

const ParsedJson* RequestFields::find(std::string_view name) {
  read_.emplace(name);
  const auto found = document_.find(std::string(name));
  return found == document_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<double> RequestFields::number(std::string_view name, double least, double most) {
  const ParsedJson* value = find(name);
  if (value == nullptr) return std::nullopt;
  const double given = value->is_number() ? value->get<double>() : std::nan("");
  if (!(given >= least && given <= most))
    throw field_error(full(name), fmt::format("has to be a number from {} to {}", least, most));
  return given;
}

std::optional<std::uint64_t> RequestFields::whole(std::string_view name, std::uint64_t least,
                                                  std::uint64_t most) {
  const ParsedJson* value = find(name);
  if (value == nullptr) return std::nullopt;
  const bool fits = value->is_number_unsigned() && value->get<std::uint64_t>() >= least &&
                    value->get<std::uint64_t>() <= most;
  if (!fits)
    throw field_error(full(name), fmt::format("has to be a whole number from {} to {}", least, most));
  return value->get<std::uint64_t>();
}

std::optional<bool> RequestFields::flag(std::string_view name) {
  const ParsedJson* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) throw field_error(full(name), "has to be true or false");
  return value->get<bool>();
}

std::optional<std::string> RequestFields::text(std::string_view name) {
  const ParsedJson* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) throw field_error(full(name), "has to be a string");
  return value->get<std::string>();
}

void RequestFields::pass_over(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) read_.emplace(name);
}

void RequestFields::refuse_but(std::string_view name, const ParsedJson& harmless, std::string_view why) {
  const ParsedJson* value = find(name);
  if (value != nullptr && *value != harmless) throw field_error(full(name), why);
}

void RequestFields::refuse_others() const {
  for (const auto& [name, value] : document_.items()) {
    if (value.is_null() || read_.find(name) != read_.end()) continue;
    const std::string shown = escape_for_terminal(name.substr(0, kShownName));
    throw field_error(prefix_ + shown, "is no field that is known here");
  }
}

}  // namespace assay
