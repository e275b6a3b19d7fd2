#include "core/formats/imatrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/formats/gguf.h"
#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::uint64_t kLargestFile = 8ull << 30;
constexpr std::uint64_t kLongestName = 4096;

void check_values(const ImportanceMatrix& matrix, const fs::path& path) {
  for (const auto& [name, values] : matrix.entries) {
    const auto bad =
        std::find_if(values.begin(), values.end(), [](float v) { return !(v >= 0) || std::isinf(v); });
    if (bad != values.end())
      throw Error::input(fmt::format("column {} has the importance {}", bad - values.begin(), *bad))
          .in(path)
          .tensor(name);
  }
  if (matrix.entries.empty()) throw Error::input("is an importance matrix without entries").in(path);
}

// entries:  i32 count;  each: i32 length, name, i32 calls, i32 values, float32 …;  then, perhaps, i32 chunks,
// i32 length, dataset. Values are sums over the calls.
class LegacyReader {
 public:
  explicit LegacyReader(const fs::path& path) : path_(path), file_(File::open(path)) {}

  ImportanceMatrix read() {
    ImportanceMatrix matrix;
    const std::uint64_t count = number("the number of entries");
    for (std::uint64_t i = 0; i < count; ++i) {
      std::string name = text("a name");
      const std::uint64_t calls = number("a number of calls"), size = number("a number of values");
      std::vector<float> values(size_within(size, sizeof(float)));
      take(std::as_writable_bytes(std::span(values)));
      if (calls > 0) {
        for (float& value : values) value /= static_cast<float>(calls);
      }
      if (!matrix.entries.emplace(std::move(name), std::move(values)).second) fail("an entry is there twice");
    }
    if (at_ == file_.size()) return matrix;
    matrix.chunks = number("the number of chunks");
    if (at_ < file_.size()) matrix.dataset = text("a dataset's name");
    return matrix;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error::input(fmt::format("is no importance matrix: {}", what)).in(path_).at(at_);
  }
  void take(std::span<std::byte> out) {
    if (out.size() > file_.size() - at_) fail("it ends within an entry");
    file_.read_exactly(at_, out);
    at_ += out.size();
  }
  std::uint64_t number(const char* what) {
    std::int32_t value = 0;
    take(std::as_writable_bytes(std::span(&value, 1)));
    if (value < 0) fail(fmt::format("{} is {}", what, value));
    return static_cast<std::uint64_t>(value);
  }
  std::uint64_t size_within(std::uint64_t count, std::uint64_t each) const {
    if (count > (file_.size() - at_) / each) fail("it ends within an entry");
    return count;
  }
  std::string text(const char* what) {
    const std::uint64_t length = number(what);
    if (length > kLongestName) fail(fmt::format("{} has {} characters", what, length));
    std::string value(size_within(length, 1), '\0');
    take(std::as_writable_bytes(std::span(value)));
    return value;
  }

  const fs::path& path_;
  File file_;
  std::uint64_t at_ = 0;
};

// Tensors "NAME.in_sum2" [experts, columns] and "NAME.counts" [experts, 1], of float32.
class GgufReader {
 public:
  explicit GgufReader(const fs::path& path)
      : path_(path), file_(File::open(path)), header_(gguf::read_header(file_)) {}

  ImportanceMatrix read() const {
    if (header_.text("general.type").value_or("imatrix") != "imatrix" ||
        !header_.number("imatrix.chunk_count"))
      throw Error::input("is a GGUF, and no importance matrix").in(path_);
    ImportanceMatrix matrix;
    matrix.chunks = *header_.number("imatrix.chunk_count");
    const gguf::KeyValue* datasets = header_.find("imatrix.datasets");
    const auto* names = datasets == nullptr ? nullptr : std::get_if<gguf::Array>(&datasets->value);
    if (names != nullptr && names->count > 0 && names->type == gguf::ValueType::string)
      matrix.dataset = names->strings().front();
    constexpr std::string_view kSums = ".in_sum2";
    for (const gguf::Tensor& tensor : header_.tensors) {
      if (!tensor.name.ends_with(kSums)) continue;
      const std::string name = tensor.name.substr(0, tensor.name.size() - kSums.size());
      matrix.entries[name] = means(tensor, name);
    }
    return matrix;
  }

 private:
  std::vector<float> values_of(const gguf::Tensor& tensor) const {
    if (tensor.type != ElementType::F32) throw Error::input("is not float32").in(path_).tensor(tensor.name);
    std::vector<float> values(tensor.bytes / sizeof(float));
    file_.read_exactly(header_.data_offset + tensor.offset, std::as_writable_bytes(std::span(values)));
    return values;
  }

  // What no token has visited counts as 1 everywhere.
  std::vector<float> means(const gguf::Tensor& sums, const std::string& name) const {
    const auto counts_at = std::find_if(header_.tensors.begin(), header_.tensors.end(),
                                        [&](const gguf::Tensor& t) { return t.name == name + ".counts"; });
    if (counts_at == header_.tensors.end())
      throw Error::input("has sums and no counts").in(path_).tensor(name);
    std::vector<float> values = values_of(sums);
    const std::vector<float> counts = values_of(*counts_at);
    if (counts.empty() || values.size() % counts.size() != 0)
      throw Error::input("has another number of counts than of experts").in(path_).tensor(name);
    const std::size_t columns = values.size() / counts.size();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float count = std::round(counts[i / columns]);
      values[i] = count > 0 ? values[i] / count : 1.0F;
    }
    return values;
  }

  const fs::path& path_;
  File file_;
  gguf::Header header_;
};

bool is_gguf(const fs::path& path) {
  const File file = File::open(path);
  char magic[4] = {};
  if (file.size() < sizeof magic) return false;
  file.read_exactly(0, std::as_writable_bytes(std::span(magic)));
  return std::memcmp(magic, "GGUF", sizeof magic) == 0;
}

}  // namespace

ImportanceMatrix read_imatrix(const fs::path& path) {
  if (File::open(path).size() > kLargestFile)
    throw Error::input("is larger than any importance matrix").in(path);
  ImportanceMatrix matrix = is_gguf(path) ? GgufReader(path).read() : LegacyReader(path).read();
  check_values(matrix, path);
  return matrix;
}

}  // namespace assay
