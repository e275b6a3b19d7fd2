#include "core/model/gguf_undo.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/system/error.h"

namespace assay {
namespace {

using Piece = DerivedTensor::Piece;

// Where a piece of one tensor of the checkpoint lies in the GGUF.
struct KeptPart {
  const DerivedTensor* written;
  const Piece* piece;
  std::uint32_t place;  // in the GGUF
  std::uint64_t row;    // of it, before the order of rows within heads is changed
};

std::uint64_t columns_of(const Piece& piece, const LogicalTensor& source) {
  return piece.columns == 0 ? source.columns : piece.columns;
}

// The row of `tensor` at which row `at` of what it was put together from stands.
std::uint64_t reordered(const DerivedTensor& tensor, std::uint64_t at) {
  const std::uint64_t turning = tensor.turning_rows == 0 ? tensor.head_rows : tensor.turning_rows;
  const std::uint64_t half = turning / 2, within = at % tensor.head_rows, head = at - within;
  if (within >= turning) return at;
  return tensor.order == HeadRows::pairs_from_halves ? head + within % half * 2 + within / half
                                                     : head + within % 2 * half + within / 2;
}

HeadRows opposite(HeadRows order) {
  if (order == HeadRows::kept) return order;
  return order == HeadRows::pairs_from_halves ? HeadRows::halves_from_pairs : HeadRows::pairs_from_halves;
}

class Undoing {
 public:
  Undoing(const LogicalTensor& wanted, std::vector<KeptPart> parts)
      : wanted_(wanted), parts_(std::move(parts)) {}

  DerivedTensor run() {
    made_.name = wanted_.name;
    made_.shape = wanted_.shape;
    if (parts_.empty()) fail("no tensor of the file holds it");
    for (const KeptPart& part : parts_) take_values_back(part);
    std::sort(parts_.begin(), parts_.end(), [](const KeptPart& a, const KeptPart& b) {
      return std::tuple(a.piece->first_row, a.piece->first_column) <
             std::tuple(b.piece->first_row, b.piece->first_column);
    });
    take_columns_back();
    std::uint64_t row = 0;
    for (std::size_t i = 0; i < parts_.size(); i += made_.abreast) {
      if (parts_[i].piece->first_row != row) fail("some of its rows are kept nowhere, or twice");
      if (made_.abreast == 1)
        add_rows(parts_[i]);
      else
        for (std::size_t j = i; j < i + made_.abreast; ++j) add(parts_[j]);
      row += parts_[i].piece->rows;
    }
    if (row != wanted_.all_rows()) fail("some of its rows are kept nowhere");
    return std::move(made_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error::input("is not found again in a GGUF: " + why).tensor(wanted_.name);
  }

  void take_values_back(const KeptPart& part) {
    const DerivedTensor& written = *part.written;
    if (written.times || part.piece->is_scaled()) fail("a product with others is what the file holds");
    made_.offset = -written.offset;
    made_.log_of = written.times_exp;
    // Less their mean, values choose the same experts: they are taken as they are.
    if (written.regrouped.groups != 0) {
      if (parts_.size() != 1) fail("its columns are regrouped in several tensors");
      made_.regrouped = {written.regrouped.members, written.regrouped.groups, written.regrouped.width};
    }
  }

  // How many parts share their rows, and whether their columns take turns.
  void take_columns_back() {
    std::size_t abreast = 1;
    while (abreast < parts_.size() && parts_[abreast].piece->first_row == parts_[0].piece->first_row)
      ++abreast;
    made_.abreast = abreast;
    made_.woven = abreast > 1 && parts_[0].piece->column_step == abreast;
    if (parts_.size() % abreast != 0) fail("rows are cut differently");
    for (std::size_t i = 0; i < parts_.size(); i += abreast) {
      std::uint64_t column = 0;
      for (std::size_t j = i; j < i + abreast; ++j) {
        const Piece& piece = *parts_[j].piece;
        const bool fits = piece.first_row == parts_[i].piece->first_row &&
                          piece.rows == parts_[i].piece->rows &&
                          piece.column_step == (made_.woven ? abreast : 1) &&
                          piece.first_column == (made_.woven ? j - i : column);
        if (!fits) fail("columns are cut differently");
        column += columns_of(piece, wanted_);
      }
      if (column != wanted_.columns) fail("some of its columns are kept nowhere");
    }
  }

  void add(const KeptPart& part) {
    const Piece& piece = *part.piece;
    if (part.written->order != HeadRows::kept) fail("heads are reordered in parts of rows");
    if (piece.transposed)
      made_.pieces.push_back({part.place, part.row, columns_of(piece, wanted_), true});
    else
      made_.pieces.push_back({part.place, part.row, piece.rows});
  }

  // Rows that fill the columns: in the other order where they were reordered within heads.
  void add_rows(const KeptPart& part) {
    const DerivedTensor& written = *part.written;
    if (written.order == HeadRows::kept) return add(part);
    if (part.piece->transposed) fail("heads are reordered and transposed");
    if (parts_.size() == 1) {
      made_.order = opposite(written.order);
      made_.head_rows = written.head_rows;
      made_.turning_rows = written.turning_rows;
      made_.pieces.push_back({part.place, part.row, part.piece->rows});
      return;
    }
    for (std::uint64_t i = 0; i < part.piece->rows; ++i)
      made_.pieces.push_back({part.place, reordered(written, part.row + i), 1});
  }

  const LogicalTensor& wanted_;
  std::vector<KeptPart> parts_;
  DerivedTensor made_;
};

}  // namespace

std::vector<DerivedTensor> undo(const std::vector<GgufTensor>& written, const StoredTensors& imagined,
                                const StoredTensors& gguf, const std::filesystem::path& source,
                                std::vector<std::string>& left_out) {
  std::map<std::string_view, std::uint32_t> places;
  for (std::uint32_t i = 0; i < gguf.tensors.size(); ++i) places.emplace(gguf.tensors[i].name, i);
  std::set<std::string_view> used;
  std::vector<std::vector<KeptPart>> parts(imagined.tensors.size());
  for (const GgufTensor& tensor : written) {
    const auto found = places.find(tensor.made.name);
    used.insert(tensor.made.name);
    if (!tensor.made.computed.empty()) continue;
    if (found == places.end()) throw Error::input("is missing").in(source).tensor(tensor.made.name);
    const LogicalTensor& stored = gguf.tensors[found->second];
    if (stored.all_rows() != tensor.made.rows() || stored.columns != tensor.made.columns())
      throw Error::input("its shape is not what the metadata say").in(source).tensor(stored.name);
    std::uint64_t row = 0;
    for (const Piece& piece : tensor.made.pieces) {
      parts[piece.source].push_back({&tensor.made, &piece, found->second, row});
      row += piece.transposed ? columns_of(piece, imagined.tensors[piece.source]) : piece.rows;
    }
  }
  std::vector<DerivedTensor> made;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].empty()) made.push_back(Undoing(imagined.tensors[i], std::move(parts[i])).run());
  }
  for (const auto& [name, place] : places) {
    if (!used.contains(name)) left_out.emplace_back(name);
  }
  return made;
}

}  // namespace assay
