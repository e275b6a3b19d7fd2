#include "refimpl/claims/tensor_values.h"

#include "core/formats/safetensors.h"
#include "core/numeric/codec.h"
#include "core/system/file.h"

namespace assay {

std::map<std::string, TensorValues> read_tensor_values(const std::filesystem::path& path) {
  const File file = File::open(path);
  const safetensors::Header header = safetensors::read_header(file, safetensors::Reading::reference);
  std::map<std::string, TensorValues> tensors;
  for (const safetensors::Tensor& tensor : header.tensors) {
    std::vector<std::byte> bytes(tensor.bytes());
    file.read_exactly(header.buffer_offset() + tensor.begin, bytes);
    TensorValues& numbers = tensors[tensor.name];
    numbers.shape = tensor.shape;
    std::uint64_t count = 1;
    for (const std::uint64_t size : tensor.shape) count *= size;
    numbers.values.resize(count);
    decode(tensor.type, bytes, numbers.values.data());
  }
  return tensors;
}

}  // namespace assay
