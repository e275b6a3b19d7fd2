#include "kernels/harness/encoded_weight.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "core/formats/json.h"
#include "core/model/config.h"
#include "core/model/weight_encoder.h"
#include "core/system/error.h"
#include "core/system/finding_error.h"

namespace assay {
namespace {

// A file without a name, there as long as somebody has it open.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("weight", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw Error::from_errno("memfd_create", errno);
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0) throw Error::from_errno("write", errno);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }
  fs::path path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
};

LogicalTensor plain_matrix(std::uint64_t rows, std::uint64_t columns) {
  LogicalTensor tensor;
  tensor.name = "made.weight";
  tensor.shape = {rows, columns};
  tensor.rows = rows;
  tensor.columns = columns;
  tensor.form.codes = ElementType::F32;
  return tensor;
}

float largest_magnitude(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

// What config.json beside such a checkpoint says.
std::optional<QuantizationConfig> said_of(const WeightEncoder& encoder) {
  const Json said = encoder.quantization_config({});
  if (said.is_null()) return std::nullopt;
  return parse_quantization(parse_json(said.dump(), "config.json"), "config.json");
}

}  // namespace

EncodedWeight::EncodedWeight(const WeightEncoder& encoder, std::span<const float> values, std::uint64_t rows,
                             std::uint64_t columns) {
  const LogicalTensor tensor = plain_matrix(rows, columns);
  if (const auto why = encoder.refuses(tensor)) throw Error::usage(*why).remedy("choose other sizes");
  EncodedRows made;
  encoder.encode({tensor, 0, rows, values, largest_magnitude(values)}, made);
  MemoryFile file;
  std::uint64_t offset = 0;
  std::size_t part = 0;
  for (const EncodedPart& written : encoder.parts(tensor)) {
    const std::span<const std::byte> bytes = made.part(part++).bytes;
    file.write(bytes);
    checkpoint_.tensors.push_back(
        {tensor.name + written.suffix, written.type, written.shape, offset, bytes.size(), 0});
    offset += bytes.size();
    checkpoint_.by_name.push_back(static_cast<std::uint32_t>(checkpoint_.by_name.size()));
  }
  std::sort(checkpoint_.by_name.begin(), checkpoint_.by_name.end(), [&](std::uint32_t a, std::uint32_t b) {
    return checkpoint_.tensors[a].name < checkpoint_.tensors[b].name;
  });
  checkpoint_.files.push_back({"weight", file.path(), offset, {}, {}});
  stored_ = find_stored(checkpoint_, said_of(encoder));
  throw_first_error(stored_.findings, "weight");
  if (stored_.tensors.size() != 1) throw Error::internal("a form that is not read as it was written");
  reader_ = std::make_unique<CheckpointReader>(checkpoint_);
  reader_->file(0);  // stays open
  stored_reader_ = std::make_unique<StoredReader>(*reader_, stored_.tensors.front());
}

}  // namespace assay
