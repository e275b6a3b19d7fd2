#include "convert/spec.h"

#include <fmt/format.h>

#include <optional>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error::usage(fmt::format("--to {}: {}", text, why)).remedy("see 'assay convert --help'");
}

struct Block {
  std::uint64_t rows, columns;
};

std::optional<Block> parse_block(std::string_view text) {
  constexpr std::uint64_t kLargest = 1u << 20;
  const auto cross = text.find('x');
  if (cross == std::string_view::npos) return std::nullopt;
  const auto rows = parse_u64(text.substr(0, cross)), columns = parse_u64(text.substr(cross + 1));
  if (!rows || !columns || *rows == 0 || *columns == 0 || *rows > kLargest || *columns > kLargest)
    return std::nullopt;
  return Block{*rows, *columns};
}

void take_block(Spec& spec, std::string_view text) {
  const auto block = parse_block(text);
  if (!block) refuse(spec.text, fmt::format("\"{}\" is no block like 128x128", text));
  spec.block_rows = block->rows;
  spec.block_columns = block->columns;
}

void take_quantization(Spec& spec, std::string_view options, bool floats) {
  spec.kind = Spec::Kind::quantize;
  spec.type = floats ? ElementType::F8_E4M3 : ElementType::I8;
  bool grain_given = false;
  while (!options.empty()) {
    const auto comma = options.find(',');
    const std::string_view option = options.substr(0, comma);
    options = comma == std::string_view::npos ? "" : options.substr(comma + 1);
    const bool is_grain = option.starts_with("block=") || option == "channel" || option == "tensor";
    if (is_grain && grain_given) refuse(spec.text, "block, channel and tensor exclude each other");
    grain_given |= is_grain;
    if (option.starts_with("block="))
      take_block(spec, option.substr(6));
    else if (option == "channel")
      spec.grain = Spec::Grain::channel;
    else if (option == "tensor" && floats)
      spec.grain = Spec::Grain::tensor;
    else if (option == "scale=ue8m0" && floats)
      spec.scale = ScaleRounding::power_of_two;
    else if (option == "scale=f32")
      spec.scale = ScaleRounding::none;
    else if (option == "e4m3" && floats)
      spec.type = ElementType::F8_E4M3;
    else if (option == "e5m2" && floats)
      spec.type = ElementType::F8_E5M2;
    else
      refuse(spec.text, fmt::format("\"{}\" is not understood", option));
  }
  if (!grain_given) refuse(spec.text, "block=ROWSxCOLUMNS or channel is needed");
}

}  // namespace

BlockQuantizer Spec::quantizer(std::uint64_t rows, std::uint64_t columns) const {
  BlockQuantizer made{.codes = type,
                      .block_rows = block_rows,
                      .block_columns = block_columns,
                      .limit = largest_code_value(type),
                      .rounding = scale};
  if (grain != Grain::block) {
    made.block_rows = grain == Grain::channel ? 1 : rows;
    made.block_columns = columns;
  }
  if (type == ElementType::I8 && int8_range == Int8Range::compressed_tensors) made.limit = 127.5F;
  return made;
}

Spec parse_spec(std::string_view text, Int8Range int8_range) {
  Spec spec;
  spec.text = text;
  spec.int8_range = int8_range;
  if (text == "bf16" || text == "f16" || text == "f32") {
    spec.type = text == "bf16" ? ElementType::BF16 : text == "f16" ? ElementType::F16 : ElementType::F32;
  } else if (text == "copy") {
    spec.kind = Spec::Kind::keep;
  } else if (text.starts_with("reblock=")) {
    spec.kind = Spec::Kind::reblock;
    take_block(spec, text.substr(8));
  } else if (text.starts_with("fp8:")) {
    take_quantization(spec, text.substr(4), true);
  } else if (text.starts_with("int8:")) {
    take_quantization(spec, text.substr(5), false);
  } else {
    refuse(text, "not one of copy, reblock=64x64, bf16, f16, f32, fp8:…, int8:…");
  }
  if (int8_range == Int8Range::compressed_tensors &&
      (spec.type != ElementType::I8 || spec.grain != Spec::Grain::channel))
    refuse(text, "--int8-range compressed-tensors goes with int8:channel");
  return spec;
}

}  // namespace assay
