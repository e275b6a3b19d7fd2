#include "core/formats/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <tuple>

#include "core/formats/impostor.h"
#include "core/formats/safetensors_json.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/text.h"

namespace assay::safetensors {
namespace {

constexpr std::uint64_t kLengthBytes = 8;

std::uint64_t load_length(std::span<const std::byte> prefix) {
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;)
    length = length << 8 | std::to_integer<std::uint64_t>(prefix[i]);
  return length;
}

// The claims of the first eight bytes, before anything is allocated for them.
void check_length(std::uint64_t json_bytes, std::uint64_t file_bytes, const fs::path& source) {
  if (json_bytes > kMaxHeaderBytes) {
    throw Error::input(
        fmt::format("header length {} exceeds the limit of {} bytes", json_bytes, kMaxHeaderBytes))
        .in(source)
        .at(0);
  }
  if (json_bytes > file_bytes - kLengthBytes) {
    throw Error::input(fmt::format("header length {} exceeds the file's {} bytes", json_bytes, file_bytes))
        .in(source)
        .at(0);
  }
}

void check_size(std::uint64_t file_bytes, const fs::path& source) {
  if (file_bytes >= kLengthBytes) return;
  throw Error::input(fmt::format("file of {} bytes is too short for a safetensors header", file_bytes))
      .in(source)
      .at(0);
}

// A pointer or a web page read as a length is a huge number: say what it is instead.
std::uint64_t read_length(const File& file) try {
  check_size(file.size(), file.path());
  std::byte length_field[kLengthBytes];
  file.read_exactly(0, length_field);
  const std::uint64_t json_bytes = load_length(length_field);
  check_length(json_bytes, file.size(), file.path());
  return json_bytes;
} catch (const Error&) {
  refuse_impostor(file);
  throw;
}

std::string describe(const Tensor& tensor) {
  return fmt::format("{} [{}]", name(tensor.type), fmt::join(tensor.shape, ", "));
}

// What the element type and shape ask for; the reference computes in bits, so 2^61 elements overflow already.
std::uint64_t wanted_bytes(const Tensor& tensor) {
  const ElementInfo& type = info(tensor.type);
  const std::optional<std::uint64_t> elements = element_count(tensor.shape);
  if (!elements) throw Error::input(fmt::format("the product of its shape {} overflows", describe(tensor)));
  if (*elements % type.block_elements != 0) {
    throw Error::input(fmt::format("{} does not end at a byte boundary", describe(tensor)));
  }
  const std::optional<std::uint64_t> bytes = storage_bytes(tensor.type, *elements);
  std::uint64_t bits = 0;
  if (!bytes || __builtin_mul_overflow(*bytes, 8, &bits)) {
    throw Error::input(fmt::format("the size of {} overflows", describe(tensor)));
  }
  return *bytes;
}

void check_tensor(const Tensor& tensor, const Tensor* before) {
  const std::uint64_t expected = before == nullptr ? 0 : before->end;
  if (tensor.end < tensor.begin) {
    throw Error::input(fmt::format("its data_offsets [{}, {}] run backwards", tensor.begin, tensor.end));
  }
  if (tensor.begin > expected) {
    throw Error::input(fmt::format("{} bytes before it belong to no tensor", tensor.begin - expected));
  }
  if (tensor.begin < expected) {
    throw Error::input(fmt::format("its data overlap those of tensor {:.200}", before->name));
  }
  if (const std::uint64_t wanted = wanted_bytes(tensor); wanted != tensor.bytes()) {
    throw Error::input(fmt::format("{} takes {} bytes, but its data_offsets [{}, {}] span {}",
                                   describe(tensor), wanted, tensor.begin, tensor.end, tensor.bytes()));
  }
}

// The tensors, in order, must cover the buffer exactly: no hole, no overlap, nothing before, nothing after.
void check_layout(const Header& header, const fs::path& source) {
  const Tensor* before = nullptr;
  for (const Tensor& tensor : header.tensors) {
    try {
      check_tensor(tensor, before);
    } catch (Error& error) {
      std::uint64_t offset = 0;
      if (!__builtin_add_overflow(header.buffer_offset(), tensor.begin, &offset)) error.at(offset);
      throw std::move(error).in(source).tensor(tensor.name);
    }
    before = &tensor;
  }
  const std::uint64_t end = before == nullptr ? 0 : before->end;
  const std::uint64_t buffer = header.file_bytes - header.buffer_offset();
  if (end > buffer) {
    throw Error::input(fmt::format("file is truncated: the last {} bytes are missing", end - buffer))
        .in(source)
        .at(header.file_bytes);
  }
  if (end < buffer) {
    throw Error::input(fmt::format("{} bytes after the last tensor belong to no tensor", buffer - end))
        .in(source)
        .at(header.buffer_offset() + end);
  }
}

bool is_plain(std::string_view text) {
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
  return ascii || escape_for_terminal(text) == text;
}

// Allowed by both readings, and still worth a word: one note a file.
void add_notes(Header& header) {
  const Tensor *misaligned = nullptr, *odd_name = nullptr;
  std::size_t misaligned_count = 0, odd_name_count = 0;
  for (const Tensor& tensor : header.tensors) {
    const ElementInfo& type = info(tensor.type);
    const std::uint64_t alignment = type.block_elements == 1 ? type.block_bytes : 1;
    if ((header.buffer_offset() + tensor.begin) % alignment != 0 && misaligned_count++ == 0)
      misaligned = &tensor;
    if ((tensor.name.empty() || !is_plain(tensor.name)) && odd_name_count++ == 0) odd_name = &tensor;
  }
  const auto note = [&](std::string_view code, std::string message, const Tensor& tensor) {
    header.deviations.push_back({.severity = Severity::note,
                                 .code = std::string(code),
                                 .message = std::move(message),
                                 .file = {},
                                 .tensor = tensor.name,
                                 .offset = header.buffer_offset() + tensor.begin,
                                 .remedy = {}});
  };
  if (misaligned != nullptr) {
    note("safetensors.misaligned",
         fmt::format(
             "{} of {} tensors do not begin at a multiple of their element size; loaders must copy them",
             misaligned_count, header.tensors.size()),
         *misaligned);
  }
  if (odd_name != nullptr) {
    note("safetensors.odd_name",
         fmt::format("{} tensor names are empty or hold characters that do not print", odd_name_count),
         *odd_name);
  }
}

Header parse(std::span<const std::byte> prefix, std::uint64_t file_bytes, Reading reading,
             const fs::path& source, PassingText* passing) {
  check_size(file_bytes, source);
  const auto too_short = [&] {
    return Error::internal(fmt::format("{} bytes of a safetensors header were read", prefix.size()));
  };
  if (prefix.size() < kLengthBytes) throw too_short();
  Header header;
  header.file_bytes = file_bytes;
  header.json_bytes = load_length(prefix);
  check_length(header.json_bytes, file_bytes, source);
  if (prefix.size() - kLengthBytes < header.json_bytes) throw too_short();
  const std::span<const std::byte> json = prefix.subspan(kLengthBytes, header.json_bytes);
  read_header_json({reinterpret_cast<const char*>(json.data()), json.size()}, reading, source, header,
                   passing);
  std::sort(header.tensors.begin(), header.tensors.end(), [](const Tensor& a, const Tensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_layout(header, source);
  add_notes(header);
  return header;
}

}  // namespace

Header parse_header(std::span<const std::byte> prefix, std::uint64_t file_bytes, Reading reading,
                    const fs::path& source) {
  return parse(prefix, file_bytes, reading, source, nullptr);
}

Header read_header(const File& file, Reading reading) {
  const std::uint64_t json_bytes = read_length(file);
  const std::size_t prefix_bytes = kLengthBytes + json_bytes;
  const auto prefix = std::make_unique_for_overwrite<std::byte[]>(prefix_bytes);
  file.read_exactly(0, {prefix.get(), prefix_bytes});
  // The length field is read again with the rest: parse_header then judges one consistent prefix.
  if (load_length({prefix.get(), kLengthBytes}) != json_bytes) {
    throw Error::input("file changed while its header was read").in(file.path()).at(0);
  }
  PassingText json(reinterpret_cast<char*>(prefix.get()) + kLengthBytes, json_bytes);
  return parse({prefix.get(), prefix_bytes}, file.size(), reading, file.path(), &json);
}

}  // namespace assay::safetensors
