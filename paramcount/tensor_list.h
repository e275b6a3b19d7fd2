// Every tensor of a model, a line each: what `paramcount --tensors` writes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/system/report.h"
#include "paramcount/paramcount.h"

namespace assay {

// Names and shapes are those of the published checkpoint, unquantized; type and bytes as it stores them where its
// headers are at hand, else as `question.plan.format` would, scales included. With a layout, the shape that the widest
// rank holds. Tied, duplicated and dead tensors are listed and told so.
struct TensorLine {
  std::string name;
  const TensorSpec* spec;
  std::string type;  // "BF16", "F8_E4M3 128x128", "fp8-block"
  std::uint64_t bytes;
  std::vector<std::uint64_t> rank_shape;  // empty: no layout was asked for
  bool mtp;                               // of multi-token prediction
  bool stored;                            // the checkpoint holds it
};
void for_each_line(const Model& model, const Question& question,
                   const std::function<void(const TensorLine&)>& visit);

std::string render_tensor_table(const Model& model, const Question& question);
std::string render_tensor_csv(const Model& model, const Question& question);  // RFC 4180
Json render_tensor_json(const Model& model, const Question& question);        // assay.paramcount-tensors/1

}  // namespace assay
