#include "refimpl/handoff/handoff_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::string_view kMagic = "assay hand-off 2";
static_assert(kMagic.size() == 16);

std::vector<std::byte> header_bytes(const PartHeader& h) {
  std::vector<std::byte> bytes;
  bytes.reserve(kPartHeaderBytes);
  for (const char c : kMagic) bytes.push_back(static_cast<std::byte>(c));
  put_bytes(bytes, h.identity.bytes);
  put_bytes(bytes, h.text.bytes);
  put_bytes(bytes, h.handoff);
  for (const std::uint64_t value :
       {h.serial, static_cast<std::uint64_t>(h.kind), h.layer, h.matrix, h.first, h.rows, h.heads.first,
        h.heads.count, h.heads.of, h.columns, h.number_bytes})
    put_number(bytes, value);
  return bytes;
}

template <std::size_t N>
void read_array(std::span<const std::byte>& bytes, std::array<std::uint8_t, N>& out) {
  for (std::size_t i = 0; i < N; ++i) out[i] = std::to_integer<std::uint8_t>(bytes[i]);
  bytes = bytes.subspan(N);
}

PartHeader read_header(std::span<const std::byte> bytes) {
  PartHeader h;
  bytes = bytes.subspan(kMagic.size());
  read_array(bytes, h.identity.bytes);
  read_array(bytes, h.text.bytes);
  read_array(bytes, h.handoff);
  std::uint64_t kind = 0;
  for (std::uint64_t* value : {&h.serial, &kind, &h.layer, &h.matrix, &h.first, &h.rows, &h.heads.first,
                               &h.heads.count, &h.heads.of, &h.columns, &h.number_bytes}) {
    *value = whole_number_at(bytes);
    bytes = bytes.subspan(8);
  }
  if (kind > static_cast<std::uint64_t>(PartKind::end))
    throw Error::input("a part of a hand-off is of a kind that nobody knows");
  h.kind = static_cast<PartKind>(kind);
  return h;
}

std::uint64_t payload_bytes(const PartHeader& h) {
  std::uint64_t bytes = 0;
  const bool width = h.number_bytes == 1 || h.number_bytes == 2 || h.number_bytes == 4 || h.number_bytes == 8;
  if (!width || __builtin_mul_overflow(h.rows, h.columns, &bytes) ||
      __builtin_mul_overflow(bytes, h.number_bytes, &bytes) || bytes > kMostPartBytes)
    throw Error::input("a part of a hand-off says that it holds what cannot be");
  return bytes;
}

}  // namespace

std::string_view name(PartKind kind) {
  constexpr std::string_view kNames[] = {"ticket", "keys",      "values", "state",
                                         "hidden", "embedding", "draft",  "end"};
  return kNames[static_cast<std::size_t>(kind)];
}

HeadRange heads_of_rank(std::uint64_t heads, std::uint64_t ranks, std::uint64_t rank) {
  if (heads == 0 || ranks == 0 || rank >= ranks || (heads % ranks != 0 && ranks % heads != 0))
    throw Error::usage(fmt::format("{} heads are not dealt out evenly to {} ranks", heads, ranks));
  if (ranks > heads) return {rank / (ranks / heads), 1, heads};
  return {rank * (heads / ranks), heads / ranks, heads};
}

std::vector<std::byte> pack(const HandoffPart& part) {
  std::vector<std::byte> bytes = header_bytes(part.header);
  if (part.bytes.size() != payload_bytes(part.header))
    throw Error::internal("a part of a hand-off does not hold what it says");
  bytes.reserve(bytes.size() + part.bytes.size() + kDigestBytes);
  bytes.insert(bytes.end(), part.bytes.begin(), part.bytes.end());
  put_bytes(bytes, sha256_of(bytes).bytes);
  return bytes;
}

HandoffPart unpack(std::span<const std::byte> bytes) {
  const auto same = [](std::byte b, char c) { return b == static_cast<std::byte>(c); };
  if (bytes.size() < kMagic.size() ||
      !std::equal(bytes.begin(), bytes.begin() + kMagic.size(), kMagic.begin(), same))
    throw Error::input("is no part of a hand-off, or of another version");
  if (bytes.size() < kPartHeaderBytes + kDigestBytes)
    throw Error::input("a part of a hand-off ends within its header");
  HandoffPart part{read_header(bytes), {}};
  const std::uint64_t wanted = payload_bytes(part.header), whole = kPartHeaderBytes + wanted + kDigestBytes;
  if (bytes.size() != whole)
    throw Error::input(
        fmt::format("a part of a hand-off has {} bytes, and its header tells of {}", bytes.size(), whole));
  const BlockKey digest = sha256_of(bytes.first(bytes.size() - kDigestBytes));
  const auto stored = bytes.last(kDigestBytes);
  for (std::size_t i = 0; i < kDigestBytes; ++i) {
    if (static_cast<std::byte>(digest.bytes[i]) != stored[i])
      throw Error::input("a part of a hand-off is damaged: its bytes are not those of its digest");
  }
  const auto payload = bytes.subspan(kPartHeaderBytes, wanted);
  part.bytes.assign(payload.begin(), payload.end());
  return part;
}

HandoffPart part_of_text(PartHeader header, std::string_view text) {
  header.rows = 1;
  header.columns = text.size();
  header.number_bytes = 1;
  const auto bytes = std::as_bytes(std::span(text));
  return {header, {bytes.begin(), bytes.end()}};
}

HandoffPart part_of_numbers(PartHeader header, std::span<const double> numbers, NumberWidth width) {
  header.number_bytes = bytes_of(width);
  HandoffPart part{header, {}};
  part.bytes.reserve(numbers.size() * bytes_of(width));
  put_numbers(part.bytes, numbers, width);
  return part;
}

std::vector<double> numbers_of(const HandoffPart& part) {
  const std::uint64_t width = part.header.number_bytes;
  if (width != 2 && width != 4 && width != 8) throw Error::input("a part of a hand-off holds no numbers");
  std::vector<double> numbers(part.bytes.size() / width);
  get_numbers(part.bytes, static_cast<NumberWidth>(width), numbers);
  return numbers;
}

std::optional<HeadRange> heads_of_both(const HeadRange& a, const HeadRange& b) {
  const std::uint64_t first = std::max(a.first, b.first);
  const std::uint64_t end = std::min(a.first + a.count, b.first + b.count);
  if (a.of != b.of || first >= end) return std::nullopt;
  return HeadRange{first, end - first, a.of};
}

std::vector<double> take_heads(std::span<const double> rows, std::size_t row_numbers,
                               const HeadRange& heads) {
  if (heads.of == 0 || row_numbers % heads.of != 0)
    throw Error::internal("a row of a cache is not made of so many heads");
  const std::size_t head = row_numbers / heads.of;
  std::vector<double> taken;
  for (std::size_t at = 0; at < rows.size(); at += row_numbers) {
    const auto part = rows.subspan(at + heads.first * head, heads.count * head);
    taken.insert(taken.end(), part.begin(), part.end());
  }
  return taken;
}

}  // namespace assay
