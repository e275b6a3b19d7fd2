#include "tests/support/tensors.h"

#include "core/formats/safetensors.h"
#include "core/numeric/codec.h"
#include "core/system/file.h"

namespace assay::test {

std::map<std::string, Numbers> read_tensors(const std::filesystem::path& path) {
  const File file = File::open(path);
  const safetensors::Header header = safetensors::read_header(file, safetensors::Reading::strict);
  std::map<std::string, Numbers> tensors;
  for (const safetensors::Tensor& tensor : header.tensors) {
    std::vector<std::byte> bytes(tensor.bytes());
    file.read_exactly(header.buffer_offset() + tensor.begin, bytes);
    Numbers& numbers = tensors[tensor.name];
    numbers.shape = tensor.shape;
    numbers.values.resize(element_count(tensor.shape).value());
    decode(tensor.type, bytes, numbers.values.data());
  }
  return tensors;
}

}  // namespace assay::test
