// Which conversions concern GGUF, and how its types are spelled in --to.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "convert/gguf_plan.h"
#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::string_view kPrefix = "gguf:";

constexpr std::array kWritten = {
    GgufFileType::F32,    GgufFileType::F16,    GgufFileType::BF16,   GgufFileType::Q8_0,
    GgufFileType::Q4_0,   GgufFileType::Q4_1,   GgufFileType::Q5_0,   GgufFileType::Q5_1,
    GgufFileType::Q2_K,   GgufFileType::Q3_K_S, GgufFileType::Q3_K_M, GgufFileType::Q3_K_L,
    GgufFileType::Q4_K_S, GgufFileType::Q4_K_M, GgufFileType::Q5_K_S, GgufFileType::Q5_K_M,
    GgufFileType::Q6_K,   GgufFileType::IQ4_NL, GgufFileType::IQ4_XS, GgufFileType::TQ1_0,
    GgufFileType::TQ2_0,  GgufFileType::Q1_0,   GgufFileType::Q2_0,   GgufFileType::MXFP4_MOE,
    GgufFileType::MXFP4,  GgufFileType::NVFP4};

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::optional<GgufFileType> gguf_spec(std::string_view to) {
  if (to.size() < kPrefix.size() ||
      !std::equal(kPrefix.begin(), kPrefix.end(), to.begin(),
                  [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); }))
    return std::nullopt;
  const auto type = gguf_file_type_from_text(to.substr(kPrefix.size()));
  if (type && std::find(kWritten.begin(), kWritten.end(), *type) != kWritten.end()) return type;
  std::string offered;
  for (const GgufFileType written : kWritten)
    offered += fmt::format("{}{}{}", offered.empty() ? "" : ", ", kPrefix, lower_case(name(written)));
  throw Error::usage(fmt::format("--to {}: no GGUF type offered here", to)).remedy("one of " + offered);
}

bool concerns_gguf(const fs::path& in, std::string_view to) {
  if (gguf_spec(to)) return true;
  std::error_code error;
  if (in.extension() == ".gguf") return true;
  if (!fs::is_directory(in, error)) return false;
  bool gguf = false;
  for (const auto& entry : fs::directory_iterator(in, error)) {
    if (entry.path().extension() == ".safetensors") return false;
    gguf |= entry.path().extension() == ".gguf";
  }
  return gguf;
}

}  // namespace assay
