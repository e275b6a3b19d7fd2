// Numbers that a model makes for itself, seen as a weight: ones where a norm has none, tables of positions, decays.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "refimpl/ops/weight_view.h"

namespace assay {

struct OwnWeight {
  std::string name;
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;  // [rows, columns]

  OwnWeight() = default;
  OwnWeight(std::string of, std::vector<double> row)
      : name(std::move(of)), rows(1), columns(row.size()), values(std::move(row)) {}
  // Good as long as this stays where it is.
  WeightView view() const {
    WeightView view;
    view.name = &name;
    view.rows = rows;
    view.columns = columns;
    view.type = ElementType::F64;
    view.codes = reinterpret_cast<const std::byte*>(values.data());
    view.row_bytes = columns * sizeof(double);
    return view;
  }
  // Of a vector, some.
  WeightView view_of(std::size_t first, std::size_t count) const {
    WeightView some = view();
    some.codes += first * sizeof(double);
    some.columns = count;
    some.row_bytes = count * sizeof(double);
    return some;
  }
};

}  // namespace assay
