#include "core/model/parallel_words.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {

std::string key_of(const TensorSpec& spec, std::uint64_t size) {
  const Quantity& elements = spec.elements;
  std::string product;
  for (const Quantity& part : elements.parts()) {
    if (part.value() == size && !part.name().empty() && part.name() != "hidden_size") return part.name();
  }
  if (elements.kind() != Quantity::Kind::product) return elements.name();
  // n_shared_experts × moe_intermediate_size, flattened into the factors of in × out.
  std::uint64_t value = 1;
  for (const Quantity& part : elements.parts()) {
    if (part.name() == "hidden_size" || size % std::max<std::uint64_t>(1, part.value()) != 0) continue;
    product += (product.empty() ? "" : " × ") + (part.name().empty() ? part.symbols() : part.name());
    value *= part.value();
  }
  return value == size ? product : std::string(name(spec.role));
}

std::string short_name(const TensorSpec& spec) {
  std::string text = spec.name;
  if (text.ends_with(".weight")) text.resize(text.size() - 7);
  return text.substr(text.rfind('.') + 1);
}

std::string share_text(std::uint64_t size, std::uint64_t ranks) {
  if (size % ranks == 0) return std::to_string(size / ranks);
  return fmt::format("{:.2f}", static_cast<double>(size) / static_cast<double>(ranks));
}

std::string cut_text(const TensorSpec& spec, std::uint64_t size, std::uint64_t ranks, std::uint64_t share) {
  return fmt::format("{} {}/{} = {}", key_of(spec, size), size, ranks, share);
}

std::string multiple_text(std::uint64_t share, std::uint64_t of) {
  std::string text = fmt::format("{:.4f}", static_cast<double>(share) / static_cast<double>(of));
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return fmt::format(" = {} × {}", text, of);
}

std::string heads_refusal(std::uint64_t heads, std::uint64_t tp) {
  return fmt::format("Total number of attention heads ({}) must be divisible by tensor parallel size ({}).",
                     heads, tp);
}

std::string key_heads_refusal(std::uint64_t key_heads, std::uint64_t tp) {
  return fmt::format("{} is not divisible by {}", std::max(key_heads, tp), std::min(key_heads, tp));
}

std::string experts_refusal() {
  return "assert num_experts % self.moe_ep_size == 0";
}

std::string block_refusal(const TensorSpec& spec, std::uint64_t share, std::uint64_t block) {
  const bool rows = spec.parallel.partition == Partition::rows, expert = spec.part == Part::routed_expert;
  const char* what = expert && rows ? "The input_size of down's weight"
                     : expert       ? "The output_size of gate's and up's weight"
                     : rows         ? "Weight input_size_per_partition"
                                    : "Weight output_partition_size";
  return fmt::format("{} = {} is not divisible by weight quantization {} = {}.", what, share,
                     rows ? "block_k" : "block_n", block);
}

std::string group_refusal() {
  return "The input size is not aligned with the quantized weight shape. This can be caused by too large "
         "tensor "
         "parallel size.";
}

}  // namespace assay
