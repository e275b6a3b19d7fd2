// A streamed answer of a stranger's server: read the same wherever it is cut, and figures can be made of it.
// link: assay_bench_url
#include "refimpl/bench_url/answer_stream.h"

#include "refimpl/bench_url/identities.h"
#include "tests/fuzz/fuzz.h"

using namespace assay;

namespace {

RequestRecord read_in_pieces(std::string_view bytes, std::size_t piece) {
  RequestRecord record;
  record.output_wanted = 16;
  AnswerStream stream(record);
  for (std::size_t i = 0; i < bytes.size(); i += piece)
    if (!stream.push(bytes.substr(i, piece), static_cast<double>(i + 1))) break;
  stream.finish("", static_cast<double>(bytes.size() + 1));
  return record;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::as_text(data, size);
  LoadRecords load;
  load.requests = {read_in_pieces(bytes, 1)};
  const RequestRecord& one = load.requests.front();
  const RequestRecord whole = read_in_pieces(bytes, std::max<std::size_t>(1, bytes.size()));
  fuzz::require(one.end == whole.end && one.error == whole.error &&
                    one.chunks.size() == whole.chunks.size() && one.finish_reason == whole.finish_reason &&
                    one.pieces_differ == whole.pieces_differ,
                "an answer is the same wherever it is cut");
  load.planned = 1;
  load.changes = {{0, 1}, {one.ended, -1}};
  const auto latencies = latencies_of(load);
  const LoadFigures figures = figures_of(load, latencies, {});
  fuzz::require(figures.whole + figures.failed == 1, "a request is whole or has failed");
  for (const Identity& identity : check_identities(load, latencies, figures))
    fuzz::require(identity.holds || !identity.wrong.empty(), "what does not hold says why");
  return 0;
}
