// Aligning two module trees: rows with the same title meet; what only one model has stands alone.
#include <algorithm>

#include "paramcount/paramcount.h"

namespace assay {
namespace {

// "MoE layers 3-60" and "MoE layers 4-60" are the same row of a comparison; so are "layers" and "MoE layers"
// where neither model has the other's kind.
std::string kind_of(const Row& row) {
  std::string text = row.title;
  const auto digit = text.find_first_of("0123456789");
  if (row.path.find("{layer}") != std::string::npos && row.path.ends_with("}") && digit != std::string::npos)
    text.resize(digit);
  if (const auto bracket = text.find(" ("); bracket != std::string::npos) text.resize(bracket);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string with_count(const Row& row) {
  if (row.formula.empty()) return {};
  return row.count == 1 ? row.formula : std::to_string(row.count) + " × (" + row.formula + ")";
}

void add(std::vector<DiffRow>& rows, const std::vector<Row>& left, const std::vector<Row>& right, int depth) {
  std::vector<bool> taken(right.size(), false);
  const auto emit = [&](const Row* a, const Row* b) {
    DiffRow row;
    row.depth = depth;
    row.title = a != nullptr ? a->title : b->title;
    if (a != nullptr && b != nullptr && a->title != b->title) row.title += " | " + b->title;
    if (a != nullptr) row.left = a->total, row.left_formula = with_count(*a);
    if (b != nullptr) row.right = b->total, row.right_formula = with_count(*b);
    rows.push_back(std::move(row));
    static const std::vector<Row> none;
    add(rows, a != nullptr ? a->children : none, b != nullptr ? b->children : none, depth + 1);
  };
  for (const Row& a : left) {
    const auto match = std::find_if(right.begin(), right.end(), [&](const Row& b) {
      return !taken[static_cast<std::size_t>(&b - right.data())] && kind_of(a) == kind_of(b);
    });
    if (match == right.end()) {
      emit(&a, nullptr);
      continue;
    }
    taken[static_cast<std::size_t>(match - right.begin())] = true;
    emit(&a, &*match);
  }
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (!taken[i]) emit(nullptr, &right[i]);
  }
}

}  // namespace

std::vector<DiffRow> diff_rows(const std::vector<Row>& left, const std::vector<Row>& right) {
  std::vector<DiffRow> rows;
  add(rows, left, right, 0);
  return rows;
}

}  // namespace assay
