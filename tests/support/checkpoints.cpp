#include "tests/support/checkpoints.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "core/system/text.h"
#include "tests/support/support.h"

namespace assay::test {

Checkpoint make_checkpoint(const std::vector<StoredTensor>& tensors) {
  Checkpoint checkpoint;
  checkpoint.root = "/nowhere";
  checkpoint.files.push_back({"model.safetensors", "/nowhere/model.safetensors", 0, {}});
  std::uint64_t offset = 0;
  for (const StoredTensor& tensor : tensors) {
    const std::uint64_t bytes = storage_bytes(tensor.type, element_count(tensor.shape).value()).value();
    checkpoint.tensors.push_back({tensor.name, tensor.type, tensor.shape, offset, bytes, 0});
    offset += bytes;
  }
  checkpoint.by_name.resize(tensors.size());
  std::iota(checkpoint.by_name.begin(), checkpoint.by_name.end(), 0u);
  std::sort(checkpoint.by_name.begin(), checkpoint.by_name.end(),
            [&](std::uint32_t a, std::uint32_t b) { return tensors[a].name < tensors[b].name; });
  return checkpoint;
}

std::vector<StoredTensor> read_tensor_list(const fs::path& tsv_gz) {
  const ProcessResult unpacked = run({"gzip", "-dc", tsv_gz.string()});
  EXPECT_EQ(unpacked.exit_code, 0);
  std::vector<StoredTensor> tensors;
  std::istringstream lines(unpacked.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const auto first = line.find('\t'), second = line.find('\t', first + 1);
    StoredTensor tensor{line.substr(0, first),
                        element_type_from_safetensors(line.substr(first + 1, second - first - 1)).value(),
                        {}};
    std::istringstream shape(line.substr(second + 1));
    for (std::string dimension; std::getline(shape, dimension, 'x');)
      tensor.shape.push_back(parse_u64(dimension).value());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace assay::test
