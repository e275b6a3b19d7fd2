#include "core/formats/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "core/formats/impostor.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay::npy {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMostAxes = 64;  // NPY_MAXDIMS of NumPy 2

struct TypeCode {
  std::string_view code;  // kind and bytes
  ElementType type;
};
constexpr std::array<TypeCode, 15> kTypes = {{{"b1", ElementType::BOOL},
                                              {"i1", ElementType::I8},
                                              {"i2", ElementType::I16},
                                              {"i4", ElementType::I32},
                                              {"i8", ElementType::I64},
                                              {"u1", ElementType::U8},
                                              {"u2", ElementType::U16},
                                              {"u4", ElementType::U32},
                                              {"u8", ElementType::U64},
                                              {"f2", ElementType::F16},
                                              {"f4", ElementType::F32},
                                              {"f8", ElementType::F64},
                                              {"c8", ElementType::C64},
                                              {"V2", ElementType::BF16},
                                              {"f1", ElementType::F8_E5M2}}};

// The one literal dictionary that a header may be.
class DictionaryReader {
 public:
  explicit DictionaryReader(std::string_view text) : text_(text) {}

  void read(Header& header) {
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!take('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        descr = true;
        read_descr(header);
      } else if (key == "fortran_order" && !order) {
        order = true;
        header.fortran_order = boolean();
      } else if (key == "shape" && !shape) {
        shape = true;
        header.shape = tuple();
      } else {
        fail(fmt::format("has a key '{:.40}' that NumPy does not write, or twice", key));
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (at_ != text_.size()) fail("goes on after its dictionary");
    if (!descr || !order || !shape) fail("lacks 'descr', 'fortran_order' or 'shape'");
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error::input(fmt::format("npy header {}", what)).at(at_);
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("has no '{}' where one must stand", c));
  }
  bool word(std::string_view expected) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  std::string_view quoted() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("has no text where one must stand");
    const std::size_t begin = at_ + 1, end = text_.find(quote, begin);
    if (end == std::string_view::npos) fail("ends inside a text");
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }

  bool boolean() {
    if (word("True")) return true;
    if (!word("False")) fail("has a 'fortran_order' that is neither True nor False");
    return false;
  }

  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> shape;
    expect('(');
    while (!take(')')) {
      skip_blanks();
      std::size_t end = at_;
      while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
      const auto dimension = parse_u64(text_.substr(at_, end - at_));
      if (!dimension) fail("has a shape that is not of whole numbers");
      at_ = end;
      word("L");  // written by Python 2
      if (shape.size() == kMostAxes) fail(fmt::format("has more than {} axes", kMostAxes));
      shape.push_back(*dimension);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }

  void read_descr(Header& header) {
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '[')
      throw Error::input("holds records, not numbers").at(at_).remedy("save each field as its own array");
    const std::string_view descr = quoted();
    if (descr.size() < 2) fail("has an empty type");
    const std::string_view code = descr.substr(1);
    if (code == "O" || descr == "O") {
      throw Error::input("holds Python objects, that is, a pickle: reading one would run its code")
          .remedy("save the numbers alone: numpy.save(file, numpy.asarray(x, dtype=numpy.float32))");
    }
    if (code == "V1") {
      throw Error::input(
          "holds bytes without a type (an 8-bit float of ml_dtypes, which NumPy does not name)")
          .remedy("save it as float32, or as safetensors");
    }
    if (std::string_view("<>|=").find(descr.front()) == std::string_view::npos)
      fail(fmt::format("has a type '{:.40}' without byte order", descr));
    const auto* known =
        std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeCode& t) { return t.code == code; });
    if (known == kTypes.end()) {
      throw Error::input(fmt::format("holds elements of NumPy type '{:.40}'", descr))
          .remedy("save it as float32, float64 or integers");
    }
    header.type = known->type;
    header.big_endian = descr.front() == '>' && info(known->type).block_bytes > 1;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

// Text begins after the length field, of 2 or 4 bytes.
std::size_t text_begin(std::span<const std::byte> prefix, const fs::path& source) {
  const bool magic = prefix.size() >= 8 && std::memcmp(prefix.data(), kMagic.data(), kMagic.size()) == 0;
  if (!magic) throw Error::input("is no npy file: it does not begin with \\x93NUMPY").in(source).at(0);
  const int major = std::to_integer<int>(prefix[6]);
  if (major < 1 || major > 3)
    throw Error::input(fmt::format("npy version {} is not known", major)).in(source).at(6);
  return major == 1 ? 10 : 12;
}

void check_size(Header& header, std::uint64_t file_bytes, const fs::path& source) {
  const auto elements = element_count(header.shape);
  const auto bytes = elements ? storage_bytes(header.type, *elements) : std::nullopt;
  if (!bytes) {
    throw Error::input(fmt::format("the size of shape ({}) overflows", fmt::join(header.shape, ", ")))
        .in(source);
  }
  header.bytes = *bytes;
  const std::uint64_t left = file_bytes - header.data_offset;
  if (left < header.bytes) {
    throw Error::input(
        fmt::format("file is truncated: {} bytes of {} are missing", header.bytes - left, header.bytes))
        .in(source)
        .at(file_bytes);
  }
  if (left > header.bytes) {
    throw Error::input(fmt::format("{} bytes after the array belong to nothing", left - header.bytes))
        .in(source)
        .at(header.data_offset + header.bytes);
  }
}

}  // namespace

std::uint64_t header_end(std::span<const std::byte> prefix, std::uint64_t file_bytes,
                         const fs::path& source) {
  const std::size_t begin = text_begin(prefix, source);
  if (prefix.size() < begin) throw Error::input("file ends inside its npy header").in(source).at(file_bytes);
  const std::uint64_t length = little_endian(prefix.subspan(8, begin - 8));
  if (length > kMaxHeaderBytes) {
    throw Error::input(
        fmt::format("npy header length {} exceeds the limit of {} bytes", length, kMaxHeaderBytes))
        .in(source)
        .at(8);
  }
  if (length > file_bytes - begin) {
    throw Error::input(fmt::format("npy header length {} exceeds the file's {} bytes", length, file_bytes))
        .in(source)
        .at(8);
  }
  return begin + length;
}

Header parse_header(std::span<const std::byte> prefix, std::uint64_t file_bytes, const fs::path& source) {
  Header header;
  header.data_offset = header_end(prefix, file_bytes, source);
  if (prefix.size() < header.data_offset)
    throw Error::internal(
        fmt::format("{} bytes of an npy header of {} were read", prefix.size(), header.data_offset));
  const std::size_t begin = text_begin(prefix, source);
  const std::span<const std::byte> text = prefix.subspan(begin, header.data_offset - begin);
  try {
    DictionaryReader({reinterpret_cast<const char*>(text.data()), text.size()}).read(header);
  } catch (Error& error) {
    throw std::move(error).in(source);
  }
  check_size(header, file_bytes, source);
  return header;
}

Header read_header(const File& file) try {
  std::vector<std::byte> prefix(std::min<std::uint64_t>(kPrefixBytes, file.size()));
  file.read_exactly(0, prefix);
  prefix.resize(header_end(prefix, file.size(), file.path()));
  file.read_exactly(0, prefix);
  return parse_header(prefix, file.size(), file.path());
} catch (const Error&) {
  refuse_impostor(file);
  throw;
}

std::vector<std::byte> in_c_order(const Header& header, std::vector<std::byte> stored) {
  const std::size_t width = info(header.type).block_bytes;
  if (stored.size() != header.bytes)
    throw Error::internal(fmt::format("{} bytes of an npy array of {}", stored.size(), header.bytes));
  if (header.big_endian) {
    const std::size_t number = header.type == ElementType::C64 ? width / 2 : width;
    for (auto it = stored.begin(); it != stored.end(); it += static_cast<std::ptrdiff_t>(number))
      std::reverse(it, it + static_cast<std::ptrdiff_t>(number));
  }
  const std::size_t axes = header.shape.size();
  if (!header.fortran_order || axes < 2 || stored.empty()) return stored;
  // Walks the result in C order; `from` follows in the stored order, where the first axis has stride 1.
  std::vector<std::uint64_t> stride(axes), index(axes);
  for (std::size_t a = 0, step = 1; a < axes; step *= header.shape[a++]) stride[a] = step;
  std::vector<std::byte> result(stored.size());
  std::uint64_t from = 0;
  for (std::size_t to = 0; to < stored.size(); to += width) {
    std::memcpy(result.data() + to, stored.data() + from * width, width);
    for (std::size_t a = axes; a-- > 0;) {
      from += stride[a];
      if (++index[a] < header.shape[a]) break;
      from -= stride[a] * header.shape[a];
      index[a] = 0;
    }
  }
  return result;
}

std::string serialize_header(ElementType type, std::span<const std::uint64_t> shape) {
  const auto* known =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeCode& t) { return t.type == type; });
  if (known == kTypes.end())
    throw Error::input(fmt::format("NumPy has no element type {}", name(type))).remedy("convert to F32");
  const char order = info(type).block_bytes == 1 ? '|' : '<';
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}", order,
                                 known->code, fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  const std::size_t begin = kMagic.size() + 4;
  text.append(63 - (begin + text.size()) % 64, ' ');
  text += '\n';
  if (text.size() > 0xFFFF) throw Error::input("an array of too many axes for npy version 1.0");
  std::string header(kMagic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xFF);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace assay::npy
