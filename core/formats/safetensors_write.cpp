#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/formats/safetensors.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay::safetensors {
namespace {

std::string json_text(std::string_view text) {
  if (!is_valid_utf8(text))
    throw Error::input("a name or text for a safetensors header is not UTF-8").tensor(text);
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  std::string json = "\"";
  if (std::all_of(text.begin(), text.end(), is_plain)) return json.append(text) += '"';  // as names are
  return nlohmann::json(text).dump();
}

void assign_offsets(std::vector<Tensor>& tensors) {
  std::uint64_t end = 0;
  for (Tensor& tensor : tensors) {
    const auto elements = element_count(tensor.shape);
    const auto bytes = elements ? storage_bytes(tensor.type, *elements) : std::nullopt;
    tensor.begin = end;
    if (!info(tensor.type).in_safetensors) {
      throw Error::input(fmt::format("safetensors has no element type {}", name(tensor.type)))
          .tensor(tensor.name);
    }
    if (!bytes || __builtin_add_overflow(end, *bytes, &end)) {
      throw Error::input(fmt::format("{} [{}] cannot be stored: its size overflows or ends within a byte",
                                     name(tensor.type), fmt::join(tensor.shape, ", ")))
          .tensor(tensor.name);
    }
    tensor.end = end;
  }
}

void refuse_repeated_names(const std::vector<Tensor>& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const Tensor& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw Error::input("two tensors of one file have this name").tensor(*twice);
  if (std::binary_search(names.begin(), names.end(), "__metadata__")) {
    throw Error::input("a tensor cannot be called __metadata__ in safetensors").tensor("__metadata__");
  }
}

}  // namespace

std::string serialize_header(std::vector<Tensor>& tensors,
                             std::span<const std::pair<std::string, std::string>> metadata,
                             std::uint64_t align_buffer_to) {
  if (align_buffer_to == 0) throw Error::internal("a safetensors buffer cannot be aligned to 0 bytes");
  refuse_repeated_names(tensors);
  assign_offsets(tensors);
  std::string text(8, '\0');
  text += '{';
  const auto separate = [&text] {
    if (text.back() != '{') text += ',';
  };
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      separate();
      text += json_text(key) + ':' + json_text(value);
    }
    text += '}';
  }
  for (const Tensor& tensor : tensors) {
    separate();
    fmt::format_to(std::back_inserter(text), R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                   json_text(tensor.name), name(tensor.type), fmt::join(tensor.shape, ","), tensor.begin,
                   tensor.end);
  }
  text += '}';
  text.append((align_buffer_to - text.size() % align_buffer_to) % align_buffer_to, ' ');
  const std::uint64_t json_bytes = text.size() - 8;
  if (json_bytes > kMaxHeaderBytes) {
    throw Error::input(
        fmt::format("a header of {} bytes exceeds the limit of {}", json_bytes, kMaxHeaderBytes))
        .remedy("write more, smaller shards");
  }
  for (int i = 0; i < 8; ++i) text[i] = static_cast<char>(json_bytes >> (8 * i) & 0xFF);
  return text;
}

void sort_as_reference(std::vector<Tensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) {
    return a.type != b.type ? a.type > b.type : a.name < b.name;
  });
}

}  // namespace assay::safetensors
