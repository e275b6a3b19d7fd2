// A vector that no checkpoint holds, as operations are given one.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "refimpl/ops/weight_view.h"

namespace assay {

// [1, values]; both outlive the view.
inline WeightView constant_view(const std::string& name, std::span<const double> values) {
  WeightView view;
  view.name = &name;
  view.rows = 1;
  view.columns = values.size();
  view.type = ElementType::F64;
  view.codes = reinterpret_cast<const std::byte*>(values.data());
  view.row_bytes = values.size() * sizeof(double);
  return view;
}

}  // namespace assay
