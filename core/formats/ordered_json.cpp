#include "core/formats/ordered_json.h"

#include <fmt/format.h>

#include "core/formats/json_builder.h"
#include "core/system/error.h"

namespace assay {
namespace {

// -Infinity outside strings becomes a number as long; NaN is no probability.
std::string without_infinities(std::string_view text, const std::filesystem::path& source) {
  constexpr std::string_view kPython = "-Infinity", kJson = "  -1e308 ";
  std::string out(text);
  bool in_string = false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (in_string && out[i] == '\\') {
      ++i;
      continue;
    }
    if (out[i] == '"') in_string = !in_string;
    if (in_string) continue;
    const std::string_view rest = std::string_view(out).substr(i);
    if (rest.starts_with("NaN")) throw Error::input("holds a NaN, which is no probability").in(source).at(i);
    if (rest.starts_with(kPython)) out.replace(i, kJson.size(), kJson);
  }
  return out;
}

}  // namespace

OrderedJson parse_ordered_json(std::string_view text, const std::filesystem::path& source,
                               const JsonLimits& limits) {
  if (text.size() > limits.max_bytes)
    throw Error::input(fmt::format("JSON of {} bytes; at most {} are read", text.size(), limits.max_bytes))
        .in(source);
  if (const auto nul = text.find('\0'); nul != std::string_view::npos)
    throw Error::input("JSON holds a NUL byte").in(source).at(nul);
  std::string rewritten;
  if (text.find("-Infinity") != std::string_view::npos || text.find("NaN") != std::string_view::npos) {
    rewritten = without_infinities(text, source);
    text = rewritten;
  }
  return JsonBuilder<OrderedJson>(text, source, limits).read();
}

}  // namespace assay
