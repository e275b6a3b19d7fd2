#include "core/model/weight_encoder.h"

#include <fmt/format.h>

#include "core/model/formats/format.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {

std::optional<std::string_view> TargetText::options(std::string_view name) const {
  if (!text.starts_with(name)) return std::nullopt;
  const std::string_view rest = text.substr(name.size());
  if (rest.empty()) return rest;
  if (rest.size() < 2 || (rest.front() != ',' && rest.front() != ':')) return std::nullopt;
  return rest.substr(1);
}

void TargetText::for_each(std::string_view options, const std::function<bool(std::string_view)>& take) const {
  while (!options.empty()) {
    const auto comma = options.find(',');
    const std::string_view option = options.substr(0, comma);
    options = comma == std::string_view::npos ? "" : options.substr(comma + 1);
    if (!take(option)) refuse(fmt::format("\"{}\" is not understood", option));
  }
}

void TargetText::refuse(const std::string& why) const {
  throw Error::usage(fmt::format("--to {}: {}", text, why)).remedy("see 'assay convert --help'");
}

TargetText::Block TargetText::block(std::string_view size) const {
  constexpr std::uint64_t kLargest = 1u << 20;
  const auto cross = size.find('x');
  const auto rows = parse_u64(size.substr(0, cross));
  const auto columns = cross == std::string_view::npos ? std::nullopt : parse_u64(size.substr(cross + 1));
  if (!rows || !columns || *rows == 0 || *columns == 0 || *rows > kLargest || *columns > kLargest)
    refuse(fmt::format("\"{}\" is no block like 128x128", size));
  return {*rows, *columns};
}

std::shared_ptr<const WeightEncoder> weight_encoder(const TargetText& text) {
  const auto formats = stored_formats();
  for (auto format = formats.rbegin(); format != formats.rend(); ++format) {
    if ((*format)->target == nullptr) continue;
    if (auto encoder = (*format)->target(text)) return encoder;
  }
  return nullptr;
}

std::string weight_targets() {
  std::string names;
  for (const StoredFormat* format : stored_formats()) {
    if (format->target_names.empty()) continue;
    names += (names.empty() ? "" : ", ") + std::string(format->target_names);
  }
  return names;
}

std::string weight_target_usage() {
  std::string lines;
  for (const StoredFormat* format : stored_formats()) {
    if (!format->target_usage.empty()) lines += fmt::format("      | {}\n", format->target_usage);
  }
  return lines;
}

}  // namespace assay
