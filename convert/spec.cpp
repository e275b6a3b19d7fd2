#include "convert/spec.h"

#include <fmt/format.h>

namespace assay {

Spec parse_spec(std::string_view text, Int8Range int8_range) {
  Spec spec;
  spec.text = text;
  const TargetText target{spec.text, int8_range};
  if (text == "bf16" || text == "f16" || text == "f32") {
    spec.type = text == "bf16" ? ElementType::BF16 : text == "f16" ? ElementType::F16 : ElementType::F32;
  } else if (text == "copy") {
    spec.kind = Spec::Kind::keep;
  } else if (text.starts_with("reblock=")) {
    spec.kind = Spec::Kind::reblock;
    const TargetText::Block block = target.block(text.substr(8));
    spec.block_rows = block.rows, spec.block_columns = block.columns;
  } else if ((spec.encoder = weight_encoder(target)) != nullptr) {
    spec.kind = Spec::Kind::quantize;
  } else {
    target.refuse(fmt::format("not one of copy, reblock=64x64, bf16, f16, f32, {}, gguf:… (gguf:q4_k_m)",
                              weight_targets()));
  }
  if (int8_range == Int8Range::compressed_tensors &&
      (spec.encoder == nullptr || !spec.encoder->takes_int8_range()))
    target.refuse("--int8-range compressed-tensors goes with int8:channel");
  return spec;
}

}  // namespace assay
