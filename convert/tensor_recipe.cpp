#include "convert/tensor_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "core/numeric/gguf_quantize.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::uint64_t kLargestRecipe = 16 << 20;

}  // namespace

TensorRecipe::TensorRecipe(const std::vector<std::string>& entries, const fs::path& file) {
  for (const std::string& entry : entries) entries_.push_back(parse(entry));
  if (file.empty()) return;
  std::istringstream lines(read_small_file(file, kLargestRecipe));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    for (std::string word; words >> word;) {
      try {
        entries_.push_back(parse(word));
      } catch (const Error& error) {
        throw Error::input(error.message()).in(file).remedy(error.remedy());
      }
    }
  }
}

TensorRecipe::Entry TensorRecipe::parse(const std::string& text) {
  const auto equals = text.rfind('=');
  const std::string shown = escape_for_terminal(text);
  if (equals == std::string::npos || equals == 0)
    throw Error::usage(fmt::format("'{}' is no REGEX=TYPE", shown)).remedy("as in attn_v=q8_0");
  const auto type = element_type_from_text(text.substr(equals + 1));
  if (!type || !gguf_can_quantize_to(*type))
    throw Error::usage(fmt::format("'{}' names no type that a GGUF is written in here", shown))
        .remedy(
            "f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_k to q6_k, iq4_nl, iq4_xs, tq1_0, tq2_0, q1_0, "
            "q2_0, mxfp4, nvfp4 are");
  return {text, NameFilter(text.substr(0, equals), ""), *type};
}

std::optional<ElementType> TensorRecipe::type_of(std::string_view tensor) const {
  for (const Entry& entry : entries_) {
    if (entry.names.accepts(tensor)) return entry.type;
  }
  return std::nullopt;
}

void TensorRecipe::check_used(const std::vector<std::string>& tensors) const {
  for (const Entry& entry : entries_) {
    if (std::any_of(tensors.begin(), tensors.end(),
                    [&](const auto& name) { return entry.names.accepts(name); }))
      continue;
    throw Error::refused(
        fmt::format("--tensor-type {}: no tensor has such a name", escape_for_terminal(entry.text)))
        .remedy("names are the GGUF's: blk.0.attn_v.weight");
  }
}

}  // namespace assay
