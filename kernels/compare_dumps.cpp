#include "kernels/compare_dumps.h"

#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/threads.h"

namespace assay {
namespace {

void write_file(const std::string& path, const std::string& contents) {
  if (path.empty()) return;
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

}  // namespace

int run_compare_dumps(const CompareDumpsSettings& s) {
  dumps::CompareRequest request = s.request;
  request.ref = s.ref;
  request.test = s.test;
  request.map = s.map;
  request.yardstick = s.yardstick;
  request.jobs = s.common.jobs;
  if (s.rtol < 0 || !(s.rtol <= 1e6)) throw Error::usage("--rtol takes a number above 0");
  if (s.rtol > 0) request.rtol = s.rtol;
  if (s.rtol > 0 && !s.yardstick.empty()) throw Error::usage("--rtol and --yardstick exclude each other");
  const dumps::DumpComparison found = dumps::compare_dumps(request);
  if (interrupted()) return kExitInterrupted;
  const Output output(s.common.json);
  if (output.text_wanted()) {
    print_comparison(output, s, found);
    output.paint(verdict_line(found), found.good() ? Style::green : Style::red);
  }
  write_file(s.csv, s.csv.empty() ? std::string() : to_csv(found));
  write_file(s.html, s.html.empty() ? std::string() : to_page(s, found));
  if (output.json_wanted()) output.json(to_json(s, found));
  return found.good() ? kExitOk : kExitCheckFailed;
}

}  // namespace assay
