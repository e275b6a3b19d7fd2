// Lists of tensors and their digests, as engines and scripts print them.
// link: assay_formats
#include "core/formats/tensor_list.h"
#include "tests/fuzz/fuzz.h"

using namespace assay;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto list = fuzz::accepted([&] { return parse_tensor_list(fuzz::as_text(data, size), "list.json"); });
  if (!list) return 0;
  fuzz::require(!list->tensors.empty(), "what is accepted lists something");
  for (const ListedTensor& tensor : list->tensors) {
    fuzz::require(tensor.digits.size() == 64 || tensor.digits.size() == 16,
                  "digests are whole or of 64 bits");
    fuzz::require(!tensor.ranks.empty() && tensor.ranks.front() < list->ranks, "ranks are counted");
  }
  return 0;
}
