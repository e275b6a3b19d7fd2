// .npy, and .npz around them: what is accepted keeps within the file and within what it says.
#include <cstring>

#include "core/formats/npy.h"
#include "core/formats/zip.h"
#include "tests/fuzz/fuzz.h"

using namespace assay;

namespace {

constexpr std::uint64_t kMostBytes = 1 << 22;  // of a member, so that a run stays short

void check_array(std::span<const std::byte> file) {
  const auto header = fuzz::accepted([&] {
    const std::uint64_t end =
        npy::header_end(file.first(std::min(file.size(), npy::kPrefixBytes)), file.size(), "fuzz.npy");
    return npy::parse_header(file.first(end), file.size(), "fuzz.npy");
  });
  if (!header) return;
  fuzz::require(header->data_offset + header->bytes == file.size(), "the array ends with the file");
  const auto elements = element_count(header->shape);
  fuzz::require(elements && storage_bytes(header->type, *elements) == header->bytes,
                "its size follows from its shape");
  const auto array = file.subspan(header->data_offset);
  fuzz::require(npy::in_c_order(*header, {array.begin(), array.end()}).size() == header->bytes,
                "order changes no size");
  if (!file.empty()) {
    fuzz::require(!fuzz::accepted([&] { return npy::parse_header(file, file.size() + 1, "fuzz.npy"); }),
                  "a longer file is refused");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = fuzz::as_bytes(fuzz::as_text(data, size));
  check_array(bytes);
  const auto archive = fuzz::accepted([&] {
    return zip::Archive(
        [bytes](std::uint64_t offset, std::span<std::byte> out) {
          fuzz::require(offset <= bytes.size() && out.size() <= bytes.size() - offset,
                        "reads stay inside the file");
          if (!out.empty()) std::memcpy(out.data(), bytes.data() + offset, out.size());
        },
        bytes.size(), "fuzz.npz");
  });
  if (!archive) return 0;
  for (const zip::Member& member : archive->members()) {
    const auto part = fuzz::accepted([&] { return archive->read(member, 16); });
    fuzz::require(!part || part->size() == std::min<std::uint64_t>(16, member.bytes),
                  "a part has the length asked for");
    if (member.bytes > kMostBytes) continue;
    const auto whole = fuzz::accepted([&] { return archive->read(member); });
    if (!whole) continue;
    fuzz::require(whole->size() == member.bytes, "a member has its announced size");
    fuzz::require(part && std::equal(part->begin(), part->end(), whole->begin()),
                  "a part is the beginning of the whole");
    check_array(*whole);
  }
  return 0;
}
