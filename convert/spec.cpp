#include "convert/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

// Calls take(option) for every part between commas; false from it: not understood.
template <class Take>
void for_each_option(const Spec& spec, std::string_view options, Take take) {
  while (!options.empty()) {
    const auto comma = options.find(',');
    const std::string_view option = options.substr(0, comma);
    options = comma == std::string_view::npos ? "" : options.substr(comma + 1);
    if (!take(option)) refuse(spec.text, fmt::format("\"{}\" is not understood", option));
  }
}

struct TypeName {
  std::string_view name;
  bool e5m2, fnuz;
};
constexpr std::array<TypeName, 4> kFp8Types = {
    {{"e4m3", false, false}, {"e5m2", true, false}, {"e4m3fnuz", false, true}, {"e5m2fnuz", true, true}}};

void take_scaled(Spec& spec, std::string_view options, bool floats) {
  spec.family = Spec::Family::scaled;
  bool grain_given = false, e5m2 = false, fnuz = false;
  const auto take_type = [&](std::string_view option) {
    const auto found = std::find_if(kFp8Types.begin(), kFp8Types.end(),
                                    [&](const TypeName& type) { return type.name == option; });
    if (found == kFp8Types.end()) return false;
    e5m2 = found->e5m2;
    fnuz |= found->fnuz;
    return true;
  };
  for_each_option(spec, options, [&](std::string_view option) {
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
    else if (option == "fnuz" && floats)
      fnuz = true;
    else if (option == "config=none" && !floats)
      spec.undeclared = true;
    else
      return floats && take_type(option);
    return true;
  });
  if (!grain_given) refuse(spec.text, "block=ROWSxCOLUMNS or channel is needed");
  if (spec.undeclared && spec.grain != Spec::Grain::channel)
    refuse(spec.text, "config=none goes with int8:channel");
  if (!floats)
    spec.type = ElementType::I8;
  else if (fnuz)
    spec.type = e5m2 ? ElementType::F8_E5M2FNUZ : ElementType::F8_E4M3FNUZ;
  else
    spec.type = e5m2 ? ElementType::F8_E5M2 : ElementType::F8_E4M3;
}

bool take_ties(Spec& spec, std::string_view option) {
  if (option == "ties=even")
    spec.ties = Fp4Ties::even;
  else if (option == "ties=down")
    spec.ties = Fp4Ties::down;
  else
    return false;
  return true;
}

void take_mx(Spec& spec, std::string_view options) {
  spec.type = spec.family == Spec::Family::mxfp4 ? ElementType::F4 : ElementType::F8_E4M3;
  for_each_option(spec, options, [&](std::string_view option) {
    if (option == "scale=floor")
      spec.mx_scaling = MxScaling::floor;
    else if (option == "scale=ceil")
      spec.mx_scaling = MxScaling::ceil;
    else if (option == "scale=even")
      spec.mx_scaling = MxScaling::even;
    else if (option == "scale=rceil")
      spec.mx_scaling = MxScaling::rceil;
    else
      return spec.family == Spec::Family::mxfp4 && take_ties(spec, option);
    return true;
  });
}

void take_nvfp4(Spec& spec, std::string_view options) {
  spec.type = ElementType::F4;
  for_each_option(spec, options, [&](std::string_view option) {
    if (option == "layout=modelopt")
      spec.modelopt = true;
    else if (option == "layout=compressed-tensors")
      spec.modelopt = false;
    else
      return take_ties(spec, option);
    return true;
  });
}

void take_int4(Spec& spec, std::string_view options) {
  spec.type = ElementType::I32;
  bool grain_given = false;
  for_each_option(spec, options, [&](std::string_view option) {
    if (option == "asym") {
      spec.asymmetric = true;
    } else if (option == "channel" && !grain_given) {
      grain_given = true;
    } else if (option.starts_with("group=") && !grain_given) {
      const auto group = parse_u64(option.substr(6));
      if (!group || (*group != 32 && *group != 64 && *group != 128))
        refuse(spec.text, "a group has 32, 64 or 128 columns");
      spec.group = *group;
      grain_given = true;
    } else {
      return false;
    }
    return true;
  });
  if (!grain_given) refuse(spec.text, "group=128 or channel is needed");
}

// "mxfp4" or "mxfp4,…": the options behind a name; nullopt where the name is another.
std::optional<std::string_view> options_of(std::string_view text, std::string_view family) {
  if (!text.starts_with(family)) return std::nullopt;
  text.remove_prefix(family.size());
  if (text.empty()) return text;
  if (text.size() < 2 || (text.front() != ',' && text.front() != ':')) return std::nullopt;
  return text.substr(1);
}

bool take_quantization(Spec& spec) {
  using Family = Spec::Family;
  const std::string_view text = spec.text;
  spec.kind = Spec::Kind::quantize;
  if (text.starts_with("fp8:")) {
    take_scaled(spec, text.substr(4), true);
  } else if (text.starts_with("int8:")) {
    take_scaled(spec, text.substr(5), false);
  } else if (const auto four = options_of(text, "mxfp4")) {
    spec.family = Family::mxfp4;
    take_mx(spec, *four);
  } else if (const auto eight = options_of(text, "mxfp8")) {
    spec.family = Family::mxfp8;
    take_mx(spec, *eight);
  } else if (const auto nvidia = options_of(text, "nvfp4")) {
    spec.family = Family::nvfp4;
    take_nvfp4(spec, *nvidia);
  } else if (text.starts_with("int4:")) {
    spec.family = Family::int4;
    take_int4(spec, text.substr(5));
  } else {
    return false;
  }
  return true;
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
  } else if (!take_quantization(spec)) {
    refuse(text,
           "not one of copy, reblock=64x64, bf16, f16, f32, fp8:…, int8:…, mxfp4, mxfp8, nvfp4, int4:…");
  }
  if (int8_range == Int8Range::compressed_tensors &&
      (spec.type != ElementType::I8 || spec.grain != Spec::Grain::channel))
    refuse(text, "--int8-range compressed-tensors goes with int8:channel");
  return spec;
}

}  // namespace assay
