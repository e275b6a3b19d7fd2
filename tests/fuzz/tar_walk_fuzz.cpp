// A layer: the first byte says how it is packed and how it is cut into pieces, the rest is a tar archive.
// link: assay_verify
#include "tests/fuzz/fuzz.h"
#include "verify/claims/tar_walk.h"
#include "verify/claims/unpack.h"

using namespace assay;

namespace {

struct Counting : TarListener {
  std::uint64_t open = 0, bytes = 0, wanted = 0;
  void begin_file(const TarMember& member) override { ++open, wanted += member.size; }
  void file_bytes(std::span<const std::byte> part) override { bytes += part.size(); }
  void end_file() override { --open; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Packing packing = static_cast<Packing>(data[0] % 3);
  const std::size_t piece = 1 + data[0] / 3 * 97;
  auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  const bool whole = fuzz::accepted([&] {
                       Counting files;
                       TarWalk walk(false, &files);
                       const auto unpacker = make_unpacker(packing);
                       for (; !bytes.empty(); bytes = bytes.subspan(std::min(piece, bytes.size())))
                         unpacker->consume(bytes.first(std::min(piece, bytes.size())),
                                           [&](std::span<const std::byte> part) { walk.consume(part); });
                       unpacker->finish();
                       walk.finish();
                       fuzz::require(files.open == 0 && files.bytes == files.wanted, "every file is whole");
                       return true;
                     }).value_or(false);
  (void)whole;
  return 0;
}
