#include "kernels/harness/case_id.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

Error not_a_case(std::string_view text, std::string_view why) {
  return Error::usage(fmt::format("'{}' names no case: {}", escape_for_terminal(text), why))
      .remedy(
          "write it like linear:BF16:m=17:k=64:n=5:in=heavy:seed=1, as 'assay compare kernels' prints it");
}

// Beyond this a case is a mistake, not a measurement.
constexpr std::uint64_t kLargestNumber = 1 << 20;

}  // namespace

CaseId CaseId::parse(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (parts.size() < 2 || parts[0].empty()) throw not_a_case(text, "an operation and a form come first");
  CaseId id(parts[0], parts[1]);
  for (std::size_t i = 2; i < parts.size(); ++i) {
    const auto equals = parts[i].find('=');
    if (equals == std::string::npos || equals == 0) throw not_a_case(text, "a setting is KEY=VALUE");
    id.with(std::string_view(parts[i]).substr(0, equals), std::string_view(parts[i]).substr(equals + 1));
  }
  return id;
}

CaseId& CaseId::with(std::string_view key, std::uint64_t value) {
  return with(key, std::string_view(std::to_string(value)));
}

CaseId& CaseId::with(std::string_view key, std::string_view value) {
  const auto it =
      std::find_if(settings_.begin(), settings_.end(), [&](const auto& s) { return s.first == key; });
  if (it != settings_.end())
    it->second = value;
  else
    settings_.emplace_back(key, value);
  return *this;
}

std::string CaseId::text() const {
  std::string text = op_ + ":" + form_;
  for (const auto& [key, value] : settings_) text += ":" + key + "=" + value;
  return text;
}

std::string CaseId::word(std::string_view key, std::string_view missing) const {
  for (const auto& [known, value] : settings_) {
    if (known == key) return value;
  }
  return std::string(missing);
}

std::uint64_t CaseId::number(std::string_view key, std::uint64_t missing) const {
  const std::string value = word(key);
  if (value.empty()) return missing;
  const auto number = parse_u64(value);
  if (!number || (*number > kLargestNumber && key != "seed"))
    throw not_a_case(text(), fmt::format("{} is no number up to {}", key, kLargestNumber));
  return *number;
}

InputKind CaseId::input() const {
  const std::string wanted = word("in", name(InputKind::zero_mean));
  for (const InputKind kind : kInputKinds) {
    if (name(kind) == wanted) return kind;
  }
  throw not_a_case(text(), "there are no inputs '" + wanted + "'");
}

}  // namespace assay
