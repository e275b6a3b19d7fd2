// A request of a stranger's: whatever is asked is understood or refused. The first byte says of which route.
// link: assay_serve
#include "refimpl/serve/text_request.h"

#include "tests/fuzz/fuzz.h"

using namespace assay;

namespace {

void check(const TextRequest& request) {
  const TextLimits limits;
  fuzz::require(request.samples >= 1 && request.samples <= limits.prompts, "samples within their limit");
  fuzz::require(!request.log_probabilities || *request.log_probabilities <= limits.log_probabilities,
                "ln p within their limit");
  check_sampling(request.sampling);  // throws what no accepted request may be
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view body = fuzz::as_text(data + 1, size - 1);
  switch (data[0]) {
    case 'c':
      if (const auto chat = fuzz::accepted([&] { return parse_chat(body); })) check(chat->text);
      break;
    case 't': fuzz::accepted([&] { return parse_tokenize(body); }); break;
    case 'd': fuzz::accepted([&] { return parse_detokenize(body); }); break;
    default:
      if (const auto request = fuzz::accepted([&] { return parse_completion(body); })) check(*request);
  }
  return 0;
}
