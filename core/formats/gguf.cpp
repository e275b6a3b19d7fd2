#include "core/formats/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_set>

#include "core/formats/gguf_cursor.h"
#include "core/formats/impostor.h"
#include "core/system/error.h"
#include "core/system/finding_collector.h"
#include "core/system/text.h"

namespace assay::gguf {
namespace {

constexpr std::uint64_t kFirstPiece = 1 << 20;
constexpr std::uint32_t kLatestVersion = 3;

// The smallest encodings: a key/value is length, one byte of key, type, one byte of value; a tensor is the
// length of an empty name, no dimensions, type, offset. So a file of n bytes cannot hold more than n / these.
constexpr std::uint64_t kMinKeyValueBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;

bool is_snake_case(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}
// The specification has letters and digits alone; llama.cpp's own list also "gpt-oss" and "nemotron_h".
bool is_architecture(char c) {
  return is_snake_case(c) || c == '-';
}

// "general.architecture": segments of lower_snake_case, joined by dots, none empty; the first may be an architecture.
bool is_spec_key(std::string_view key) {
  char before = '.';
  bool first = true;
  for (const char c : key) {
    first = first && c != '.';
    if (c == '.' ? before == '.' : !(first ? is_architecture(c) : is_snake_case(c))) return false;
    before = c;
  }
  return before != '.';
}

class Parser {
 public:
  Parser(std::span<const std::byte> prefix, std::uint64_t file_bytes) : cursor_(prefix, file_bytes) {
    header_.file_bytes = file_bytes;
  }

  Header parse() {
    read_preamble();
    for (std::uint64_t i = 0; i < key_count_; ++i) read_key_value();
    read_alignment();
    for (std::uint64_t i = 0; i < tensor_count_; ++i) read_tensor();
    place_data();
    check_required_keys();
    header_.deviations = found_.take();
    return std::move(header_);
  }

 private:
  void note(Severity severity, std::string code, std::string message,
            std::optional<std::uint64_t> offset = {}, std::string tensor = {}, std::string remedy = {}) {
    Finding finding;
    finding.severity = severity;
    finding.code = std::move(code);
    finding.message = std::move(message);
    finding.tensor = std::move(tensor);
    finding.offset = offset;
    finding.remedy = std::move(remedy);
    found_.add(std::move(finding));
  }

  void read_preamble();
  void check_version();
  std::uint64_t read_count(std::string_view what, std::uint64_t smallest);
  void read_key_value();
  Value read_scalar(std::string_view key, ValueType type);
  Array read_array(std::string_view key);
  void check_bool(std::string_view key, std::string_view bytes, std::uint64_t at);
  void read_alignment();
  void read_tensor();
  void read_tensor_name(Tensor& tensor);
  void read_dimensions(Tensor& tensor);
  void read_type(Tensor& tensor);
  void place_data();
  void note_trailing(std::uint64_t end);
  void check_required_keys();

  Cursor cursor_;
  Header header_;
  FindingCollector found_;
  std::uint64_t tensor_count_ = 0, key_count_ = 0;
  std::unordered_set<std::string_view> keys_, names_;  // views of the header's bytes
  std::uint64_t next_offset_ = 0;                      // where the next tensor must begin
  std::uint64_t data_bytes_ = 0;                       // end of the last tensor, without padding
};

void Parser::read_preamble() {
  const std::string_view magic = cursor_.bytes(kMagic.size(), "the magic");
  if (magic == "lmgg" || magic == "fmgg" || magic == "tjgg" || magic == "algg") {
    throw Error::input("is a GGML file from before GGUF")
        .at(0)
        .remedy("convert it with convert_llama_ggml_to_gguf.py of llama.cpp");
  }
  if (magic != kMagic) {
    throw Error::input(
        fmt::format("does not begin with \"GGUF\" but with \"{}\"", escape_for_terminal(magic)))
        .at(0)
        .remedy("fetch the file again: this is no GGUF");
  }
  check_version();
  tensor_count_ = read_count("tensors", kMinTensorBytes);
  key_count_ = read_count("key/values", kMinKeyValueBytes);
}

void Parser::check_version() {
  const std::uint64_t at = cursor_.at();
  header_.version = cursor_.value<std::uint32_t>("the version");
  const std::uint32_t version = header_.version;
  if (version == 0) throw Error::input("GGUF version is 0").at(at);
  if ((version & 0xFFFF) == 0) {
    throw Error::input(fmt::format("is a big-endian GGUF (its version reads as {:#x})", version))
        .at(at)
        .remedy("convert it with gguf_convert_endian.py of gguf-py, or fetch the little-endian file");
  }
  if (version == 1) {
    throw Error::input("is GGUF version 1, which loaders no longer read")
        .at(at)
        .remedy("convert the model again with a current llama.cpp");
  }
  if (version > kLatestVersion) {
    throw Error::input(fmt::format("is GGUF version {}; versions 2 and 3 are known", version))
        .at(at)
        .remedy("use a newer assay, or write the file as version 3");
  }
}

std::uint64_t Parser::read_count(std::string_view what, std::uint64_t smallest) {
  const std::uint64_t at = cursor_.at();
  const auto count = cursor_.value<std::int64_t>(fmt::format("the number of {}", what));
  if (count < 0) throw Error::input(fmt::format("number of {} is negative: {}", what, count)).at(at);
  const auto positive = static_cast<std::uint64_t>(count);
  if (positive > cursor_.left() / smallest) {
    throw Error::input(fmt::format("{} {} do not fit into the {} bytes left", positive, what, cursor_.left()))
        .at(at)
        .remedy("fetch the file again: it is truncated or hostile");
  }
  if (positive > kMaxCount) {
    throw Error::input(fmt::format("{} {}; more than {} are taken for an attack", positive, what, kMaxCount))
        .at(at);
  }
  return positive;
}

void Parser::read_key_value() {
  const std::uint64_t at = cursor_.at();
  const std::string_view key = cursor_.text("a key");
  if (key.empty()) throw Error::input("a metadata key is empty").at(at);
  if (!keys_.insert(key).second)
    throw Error::input(fmt::format("metadata has the key \"{}\" twice", key)).at(at);
  if (!is_spec_key(key)) {
    note(Severity::warning, "gguf.key_not_snake_case",
         fmt::format("metadata key \"{}\" is not lower_snake_case joined by dots", key), at);
  }
  if (key.size() > 0xFFFF) {
    note(Severity::warning, "gguf.key_too_long",
         fmt::format("a metadata key is {} bytes long; the specification allows 65535", key.size()), at);
  }
  const std::uint64_t type_at = cursor_.at();
  const auto type = cursor_.value<std::uint32_t>(fmt::format("the type of key \"{}\"", key));
  if (type > static_cast<std::uint32_t>(ValueType::f64)) {
    throw Error::input(fmt::format("key \"{}\" has the unknown type {}", key, type)).at(type_at);
  }
  KeyValue kv{std::string(key), static_cast<ValueType>(type), {}};
  kv.value = kv.type == ValueType::array ? Value(read_array(key)) : read_scalar(key, kv.type);
  header_.metadata.push_back(std::move(kv));
}

Value Parser::read_scalar(std::string_view key, ValueType type) {
  const std::string what = fmt::format("the value of key \"{}\"", key);
  switch (type) {
    case ValueType::u8: return std::uint64_t{cursor_.value<std::uint8_t>(what)};
    case ValueType::i8: return std::int64_t{cursor_.value<std::int8_t>(what)};
    case ValueType::u16: return std::uint64_t{cursor_.value<std::uint16_t>(what)};
    case ValueType::i16: return std::int64_t{cursor_.value<std::int16_t>(what)};
    case ValueType::u32: return std::uint64_t{cursor_.value<std::uint32_t>(what)};
    case ValueType::i32: return std::int64_t{cursor_.value<std::int32_t>(what)};
    case ValueType::f32: return double{cursor_.value<float>(what)};
    case ValueType::u64: return cursor_.value<std::uint64_t>(what);
    case ValueType::i64: return cursor_.value<std::int64_t>(what);
    case ValueType::f64: return cursor_.value<double>(what);
    case ValueType::boolean: {
      const std::uint64_t at = cursor_.at();
      const std::string_view byte = cursor_.bytes(1, what);
      check_bool(key, byte, at);
      return byte[0] != 0;
    }
    case ValueType::string: {
      const std::uint64_t at = cursor_.at();
      const std::string_view text = cursor_.text(what);
      if (!is_valid_utf8(text)) {
        note(Severity::warning, "gguf.not_utf8", fmt::format("the value of key \"{}\" is not UTF-8", key),
             at);
      }
      return std::string(text);
    }
    case ValueType::array: break;
  }
  throw Error::internal("GGUF array read as a scalar");
}

Array Parser::read_array(std::string_view key) {
  const std::uint64_t at = cursor_.at();
  const std::string what = fmt::format("the array \"{}\"", key);
  const auto type = cursor_.value<std::uint32_t>(what);
  if (type == static_cast<std::uint32_t>(ValueType::array)) {
    throw Error::input(fmt::format("key \"{}\" is an array of arrays, which loaders refuse", key)).at(at);
  }
  if (type > static_cast<std::uint32_t>(ValueType::f64)) {
    throw Error::input(fmt::format("key \"{}\" is an array of the unknown type {}", key, type)).at(at);
  }
  Array array{static_cast<ValueType>(type), cursor_.value<std::uint64_t>(what), {}};
  if (array.count > kMaxArrayElements) {
    throw Error::input(fmt::format("key \"{}\" is an array of {} elements; the loader takes at most {}", key,
                                   array.count, kMaxArrayElements))
        .at(at + 4);
  }
  const std::uint64_t start = cursor_.at();
  if (const std::uint64_t each = value_bytes(array.type); each != 0) {
    array.encoded = cursor_.bytes(array.count * each, what);  // at most 2^30 · 8
    if (array.type == ValueType::boolean) check_bool(key, array.encoded, start);
    return array;
  }
  bool utf8 = true;
  for (std::uint64_t i = 0; i < array.count; ++i) {
    const std::string_view encoded_length = cursor_.bytes(0, what);
    const std::string_view text = cursor_.text(what);
    array.encoded.append(encoded_length.data(), sizeof(std::uint64_t) + text.size());
    if (utf8 && !is_valid_utf8(text)) {
      utf8 = false;
      note(Severity::warning, "gguf.not_utf8", fmt::format("element {} of key \"{}\" is not UTF-8", i, key),
           cursor_.at() - text.size());
    }
  }
  return array;
}

// The specification knows 0 and 1; the loader takes everything but 0 for true.
void Parser::check_bool(std::string_view key, std::string_view bytes, std::uint64_t at) {
  const auto odd = std::find_if(bytes.begin(), bytes.end(), [](char c) { return c != 0 && c != 1; });
  if (odd == bytes.end()) return;
  note(Severity::warning, "gguf.bool_value",
       fmt::format("key \"{}\" holds the boolean {}; only 0 and 1 are allowed", key,
                   static_cast<unsigned>(static_cast<unsigned char>(*odd))),
       at + static_cast<std::uint64_t>(odd - bytes.begin()));
}

void Parser::read_alignment() {
  const KeyValue* kv = header_.find("general.alignment");
  if (kv == nullptr) return;
  if (kv->type != ValueType::u32) {
    throw Error::input(fmt::format("general.alignment is of type {}, not u32", name(kv->type)));
  }
  header_.alignment = std::get<std::uint64_t>(kv->value);
  if (!std::has_single_bit(header_.alignment)) {
    throw Error::input(fmt::format("general.alignment is {}, not a power of two", header_.alignment));
  }
  if (header_.alignment % 8 != 0) {
    note(Severity::warning, "gguf.alignment_not_multiple_of_8",
         fmt::format("general.alignment is {}; the specification wants a multiple of 8", header_.alignment));
  }
}

void Parser::read_tensor() {
  const std::uint64_t at = cursor_.at();
  Tensor tensor;
  read_tensor_name(tensor);
  try {
    read_dimensions(tensor);
    read_type(tensor);
    const std::uint64_t offset_at = cursor_.at();
    tensor.offset = cursor_.value<std::uint64_t>("a tensor's offset");
    if (tensor.offset != next_offset_) {
      throw Error::input(fmt::format("its data begins at {} of the data section, where {} is due",
                                     tensor.offset, next_offset_))
          .at(offset_at);
    }
    const auto size = padded(tensor.bytes, header_.alignment);
    data_bytes_ = next_offset_ + tensor.bytes;
    if (!size || __builtin_add_overflow(next_offset_, *size, &next_offset_)) {
      throw Error::input("its padded size takes the data section beyond 64 bits").at(at);
    }
  } catch (Error& error) {
    throw error.tensor(tensor.name);
  }
  header_.tensors.push_back(std::move(tensor));
}

void Parser::read_tensor_name(Tensor& tensor) {
  const std::uint64_t at = cursor_.at();
  const std::string_view stored = cursor_.text("a tensor's name");
  tensor.name = stored;
  if (stored.size() > kMaxNameBytes) {
    note(Severity::error, "gguf.name_too_long",
         fmt::format("name is {} bytes long; ggml loads at most {}", stored.size(), kMaxNameBytes), at,
         tensor.name, "shorten the tensor's name");
  }
  // ggml copies names as C strings: to it, what follows a NUL is not there.
  const std::string_view seen = stored.substr(0, stored.find('\0'));
  if (seen.size() != stored.size()) {
    note(Severity::error, "gguf.name_has_nul", "name holds a NUL byte, at which loaders cut it", at,
         tensor.name);
  }
  if (!is_valid_utf8(stored)) {
    note(Severity::warning, "gguf.not_utf8", "name is not UTF-8", at, tensor.name);
  }
  if (!names_.insert(seen).second) {
    throw Error::input("two tensors have this name").tensor(tensor.name).at(at);
  }
}

void Parser::read_dimensions(Tensor& tensor) {
  const std::uint64_t at = cursor_.at();
  const auto dimensions = cursor_.value<std::uint32_t>("a tensor's dimensions");
  if (dimensions > kMaxDimensions) {
    throw Error::input(fmt::format("it has {} dimensions; GGUF allows {}", dimensions, kMaxDimensions))
        .at(at);
  }
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const std::uint64_t value_at = cursor_.at();
    const auto value = cursor_.value<std::int64_t>("a tensor's dimensions");
    if (value < 0) throw Error::input(fmt::format("its dimension {} is {}", i, value)).at(value_at);
    tensor.ne.push_back(static_cast<std::uint64_t>(value));
  }
  const auto elements = element_count(tensor.ne);
  if (!elements || *elements >= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw Error::input("its dimensions multiply to 2^63-1 elements or more").at(at);
  }
  if (*elements == 0) {
    note(Severity::warning, "gguf.empty_tensor", "has a dimension of 0, by which older loaders divide", at,
         tensor.name);
  }
}

void Parser::read_type(Tensor& tensor) {
  const std::uint64_t at = cursor_.at();
  const auto id = cursor_.value<std::uint32_t>("a tensor's type");
  const auto type = element_type_from_ggml(id);
  if (!type) {
    throw Error::input(fmt::format("its type {} is unknown to, or was removed from, ggml", id))
        .at(at)
        .remedy("convert the model again with a current llama.cpp");
  }
  tensor.type = *type;
  const std::uint64_t row = tensor.ne.empty() ? 1 : tensor.ne[0];
  if (row % info(*type).block_elements != 0) {
    throw Error::input(fmt::format("its rows of {} elements are no whole blocks of {}, which {} needs", row,
                                   info(*type).block_elements, assay::name(*type)))
        .at(at);
  }
  const auto bytes = storage_bytes(*type, *element_count(tensor.ne));
  if (!bytes) throw Error::input("its size in bytes is beyond 64 bits").at(at);
  tensor.bytes = *bytes;
}

void Parser::place_data() {
  const std::uint64_t aligned = *padded(cursor_.at(), header_.alignment);  // at most 2^28 + 2^32
  if (header_.tensors.empty()) {  // a vocabulary: it may end, unpadded, where its last key does
    header_.data_offset = std::min(aligned, header_.file_bytes);
    if (header_.file_bytes > aligned) note_trailing(aligned);
    return;
  }
  header_.data_offset = aligned;
  const std::uint64_t have = header_.file_bytes;
  for (const Tensor& tensor : header_.tensors) {
    const std::uint64_t end = tensor.offset + tensor.bytes;  // <= next_offset_, which did not overflow
    if (have >= header_.data_offset && have - header_.data_offset >= end) continue;
    std::uint64_t whole = 0;
    const bool representable = !__builtin_add_overflow(header_.data_offset, data_bytes_, &whole);
    throw Error::input(
        representable
            ? fmt::format("file is truncated by {} bytes: this tensor's data is not all there", whole - have)
            : std::string("its data ends beyond 64 bits"))
        .tensor(tensor.name)
        .at(have)
        .remedy("fetch the file again, or the missing end of it");
  }
  const std::uint64_t data_at_hand = have - header_.data_offset;
  if (data_at_hand < next_offset_) {
    note(Severity::note, "gguf.padding_missing",
         fmt::format("the last tensor's padding of {} bytes is not all there, which loaders allow",
                     next_offset_ - data_bytes_));
  } else if (data_at_hand > next_offset_) {
    note_trailing(header_.data_offset + next_offset_);
  }
}

void Parser::note_trailing(std::uint64_t end) {
  note(Severity::warning, "gguf.trailing_bytes",
       fmt::format("{} bytes follow the data, and belong to no tensor", header_.file_bytes - end), end);
}

void Parser::check_required_keys() {
  const auto split = header_.split();
  if (split && split->number >= split->count) {
    note(Severity::error, "gguf.split_number",
         fmt::format("split.no is {}, of split.count {}", split->number, split->count));
  }
  if (split && split->tensors < header_.tensors.size()) {
    note(Severity::error, "gguf.split_tensors",
         fmt::format("this split alone has {} tensors, split.tensors.count for all of them is {}",
                     header_.tensors.size(), split->tensors));
  }
  if (split && split->number > 0) return;  // the first split speaks for all
  const auto architecture = header_.text("general.architecture");
  if (!architecture) {
    note(Severity::warning, "gguf.architecture_missing",
         "metadata has no general.architecture, which is required");
  } else if (architecture->empty() ||
             !std::all_of(architecture->begin(), architecture->end(), is_architecture)) {
    note(Severity::warning, "gguf.architecture_name",
         fmt::format("general.architecture \"{}\" is not of lower-case letters, digits, - and _",
                     *architecture));
  }
  const bool quantized = std::any_of(header_.tensors.begin(), header_.tensors.end(),
                                     [](const Tensor& t) { return info(t.type).block_elements > 1; });
  if (quantized && !header_.number("general.quantization_version")) {
    note(Severity::warning, "gguf.quantization_version_missing",
         "tensors are quantized, but metadata has no general.quantization_version");
  }
}

}  // namespace

Header parse_header(std::span<const std::byte> prefix, std::uint64_t file_bytes, const fs::path& source) {
  try {
    return Parser(prefix, file_bytes).parse();
  } catch (const NeedMore& more) {
    throw Error::internal(fmt::format("the header needs {} bytes, {} were read", more.bytes, prefix.size()))
        .in(source);
  } catch (Error& error) {
    throw error.in(source);
  }
}

Header read_header(const File& file) {
  std::vector<std::byte> prefix;
  std::uint64_t wanted = kFirstPiece;
  while (true) {
    const std::size_t had = prefix.size();
    prefix.resize(std::min(wanted, file.size()));
    file.read_exactly(had, std::span(prefix).subspan(had));
    try {
      return Parser(prefix, file.size()).parse();
    } catch (const NeedMore& more) {
      wanted = std::max(more.bytes, 2 * wanted);
    } catch (Error& error) {
      refuse_impostor(file);
      throw error.in(file.path());
    }
  }
}

}  // namespace assay::gguf
