#include "kernels/harness/guarded_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "refimpl/ops/support.h"

namespace assay {
namespace {

constexpr std::size_t kCanaries = 32;  // elements before and behind: more than any vector is wide

// Two quiet NaNs with payloads of their own, so that a NaN the kernel computed is not taken for one of them.
template <class T>
T canary();
template <>
float canary() {
  return std::bit_cast<float>(0x7FCAFE01u);
}
template <>
double canary() {
  return std::bit_cast<double>(std::uint64_t{0x7FFCAFE01CAFE01C});
}
template <class T>
T poison();
template <>
float poison() {
  return std::bit_cast<float>(0x7FDEAD03u);
}
template <>
double poison() {
  return std::bit_cast<double>(std::uint64_t{0x7FFDEAD03DEAD03D});
}

template <class T>
bool is_canary(const T& value) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  return std::bit_cast<Bits>(value) == std::bit_cast<Bits>(canary<T>());
}

}  // namespace

namespace {

// visit(row r as a span of its elements), of any type.
template <class Visitor>
void for_each_row(const Matrix& matrix, Visitor&& visit) {
  with_elements(matrix.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < matrix.rows(); ++r) visit(r, std::span(matrix.row<T>(r), matrix.columns()));
  });
}

}  // namespace

// The next block that was used before, if it is as large; null else, and whoever asks gets new memory.
Matrix GuardedOps::again(std::size_t rows, std::size_t columns) {
  if (next_ >= blocks_.size()) return {};
  const Matrix& matrix = blocks_[next_].matrix;
  if (matrix.rows() != rows || matrix.columns() != columns) return {};
  ++next_;
  for_each_row(matrix, [](std::size_t, auto row) {
    std::fill(row.begin(), row.end(), poison<typename decltype(row)::value_type>());
  });
  return matrix;
}

Matrix GuardedOps::allocate(std::size_t rows, std::size_t columns) {
  if (next_ != kNone) {
    if (Matrix used = again(rows, columns); !used.empty()) return used;
  }
  // One row more: room for the canaries, whatever the type.
  const std::size_t stride = columns + padding_;
  const std::size_t lead = (kCanaries + stride) / std::max<std::size_t>(1, stride);
  const std::size_t margin = stride == 0 ? 0 : lead;
  const Matrix whole = ReferenceOps::allocate(rows + 2 * margin, stride);
  Matrix inner = whole.row_range(margin, rows).part(0, columns);
  if (stride == 0) return inner;
  with_elements(whole.real(), [&](auto element) {
    using T = decltype(element);
    T* all = whole.row<T>(0);
    std::fill_n(all, margin * stride, canary<T>());
    for (std::size_t r = 0; r < rows; ++r) {
      T* row = all + (margin + r) * stride;
      std::fill_n(std::fill_n(row, columns, poison<T>()), padding_, canary<T>());
    }
    std::fill_n(all + (margin + rows) * stride, margin * stride, canary<T>());
    blocks_.push_back({inner, reinterpret_cast<std::byte*>(all), stride, margin * stride});
  });
  return inner;
}

namespace {

// Four sums of every fourth word, for one waits for its multiplication at each step. Turned before a word is taken in: a
// product alone never brings a high bit down, and two changed signs would cancel.
class Fingerprint {
 public:
  void add(std::span<const std::byte> bytes) {
    for (; bytes.size() >= sizeof(Words); bytes = bytes.subspan(sizeof(Words)))
      take(bytes.data(), sizeof(Words));
    if (!bytes.empty()) take(bytes.data(), bytes.size());
  }
  std::uint64_t value() const {
    std::uint64_t all = 0;
    for (const std::uint64_t sum : sums_) all = mixed(all, sum);
    return all;
  }

 private:
  using Words = std::array<std::uint64_t, 4>;
  static std::uint64_t mixed(std::uint64_t sum, std::uint64_t word) {
    return (std::rotl(sum, 27) ^ word) * 0x9E3779B97F4A7C15ull;
  }
  void take(const std::byte* bytes, std::size_t count) {
    Words words{};
    std::memcpy(words.data(), bytes, count);
    for (std::size_t lane = 0; lane < words.size(); ++lane) sums_[lane] = mixed(sums_[lane], words[lane]);
  }
  Words sums_ = {1, 2, 3, 4};
};

}  // namespace

std::uint64_t GuardedOps::fingerprint(const Block& block) const {
  Fingerprint all;
  for_each_row(block.matrix, [&](std::size_t, auto row) { all.add(std::as_bytes(row)); });
  return all.value();
}

void GuardedOps::may_change(const Matrix& argument) {
  if (argument.empty()) return;
  with_elements(argument.real(), [&](auto element) {
    using T = decltype(element);
    for (Block& block : blocks_)
      block.changes |= !block.matrix.empty() && block.matrix.row<T>(0) == argument.row<T>(0);
  });
}

void GuardedOps::seal() {
  for (Block& block : blocks_) block.sealed = fingerprint(block);
  inputs_ = blocks_.size();
}

GuardedOps::Contents GuardedOps::contents() const {
  Contents all(inputs_);
  for (std::size_t i = 0; i < inputs_; ++i) {
    for_each_row(blocks_[i].matrix, [&](std::size_t, auto row) {
      const auto bytes = std::as_bytes(row);
      all[i].insert(all[i].end(), bytes.begin(), bytes.end());
    });
  }
  return all;
}

void GuardedOps::restore(const Contents& contents) {
  for (std::size_t i = 0; i < contents.size(); ++i) {
    for_each_row(blocks_[i].matrix, [&](std::size_t r, auto row) {
      if (!row.empty()) std::memcpy(row.data(), &contents[i][r * row.size_bytes()], row.size_bytes());
    });
  }
}

void GuardedOps::reverse_inputs() {
  for (std::size_t i = 0; i < inputs_; ++i)
    for_each_row(blocks_[i].matrix, [](std::size_t, auto row) { std::reverse(row.begin(), row.end()); });
}

std::optional<std::string> GuardedOps::changed_input() const {
  for (std::size_t i = 0; i < inputs_; ++i) {
    if (!blocks_[i].changes && fingerprint(blocks_[i]) != blocks_[i].sealed)
      return fmt::format("a {} × {} argument was changed", blocks_[i].matrix.rows(),
                         blocks_[i].matrix.columns());
  }
  return std::nullopt;
}

// What is not the matrix's own: before its first row, behind each row, behind the last one.
std::optional<std::string> GuardedOps::damage() const {
  for (const Block& block : blocks_) {
    const std::size_t rows = block.matrix.rows(), columns = block.matrix.columns();
    const auto of = [&](std::string_view where) {
      return fmt::format("{} a {} × {} matrix", where, rows, columns);
    };
    std::optional<std::string> found;
    with_elements(block.matrix.real(), [&](auto element) {
      using T = decltype(element);
      const T* all = reinterpret_cast<const T*>(block.begin);
      const auto whole = [&](std::size_t from, std::size_t count) {
        return std::all_of(all + from, all + from + count, is_canary<T>);
      };
      if (!whole(0, block.before)) found = of("memory before");
      for (std::size_t r = 0; r < rows && !found; ++r)
        if (!whole(block.before + r * block.stride + columns, block.stride - columns))
          found = of(fmt::format("the padding behind row {} of", r));
      if (!found && !whole(block.before + rows * block.stride, block.before)) found = of("memory behind");
    });
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace assay
