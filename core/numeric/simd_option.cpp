#include "core/numeric/simd_option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>

#include "core/numeric/simd_targets.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

void choose(const std::string& asked) {
  const std::vector<std::string> targets = simd_targets();
  std::string name = asked;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  if (std::find(targets.begin(), targets.end(), name) == targets.end())
    throw Error::usage(fmt::format("--isa: there is no '{}' on this processor", escape_for_terminal(asked)))
        .remedy(fmt::format("it has {}", fmt::join(targets, ", ")));
  use_simd_target(name);
}

}  // namespace

void add_isa_option(CLI::App& command) {
  command
      .add_option_function<std::string>(
          "--isa", choose, "Vector instructions no better than these: AVX3 (AVX-512), AVX2, SSE4, …")
      ->type_name("NAME");
}

}  // namespace assay
