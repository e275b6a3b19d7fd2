// The whole examination as a row of stages, each a command's work with one verdict of its own.
//
//   bytes       are these the files somebody vouches for?             verify
//   structure   headers, index, numbering, code-bearing files         verify
//   identity    headers == module tree of config.json; totals         paramcount
//   numbers     NaN, Inf, zeros, scales out of range                  verify, core/model/stored_form
//   golden      tensors, config and logits as they were recorded      check/golden
//   values      decoded weights against another checkpoint's          check/against
//   behaviour   a short forward pass, reference against kernels       check/behaviour
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/system/command_line.h"
#include "core/system/finding.h"
#include "core/system/json.h"
#include "core/system/report.h"
#include "refimpl/ops/kernel_set.h"
#include "verify/verify_report.h"

namespace assay {

// unproven: nothing was wrong and nothing was shown, for want of something to compare with.
enum class StageStatus { passed, failed, unproven, skipped };
std::string_view name(StageStatus status);

struct Stage {
  std::string name;
  StageStatus status = StageStatus::skipped;
  std::string summary;  // one sentence, no full stop
  Findings findings;
  Json detail;  // for the JSON document; null: nothing beyond the above
  double seconds = 0;
};
// failed where a finding is an error, else what it was.
void settle(Stage& stage);
// Findings whose code is wanted; those of files carry the file's name.
Findings pick(const VerifyReport& report, const std::function<bool(std::string_view)>& wanted);

// Findings of one kind that a stage names; the rest it counts.
inline constexpr std::size_t kMostNamed = 20;

struct CheckSettings {
  CommonOptions common;
  std::string path;
  std::string manifest;  // who vouches for the bytes, where PATH does not tell
  std::string golden;    // a record to hold the model to; empty: assay-golden.json beside the weights
  std::string against;   // a checkpoint whose values these ought to be
  std::string record;    // write a golden record here instead of judging by one
  std::string text;      // a file whose perplexity is measured
  std::string kernels = "cpu";
  std::string html;
  std::string variant;
  double most_perplexity = 0;    // 0: the vocabulary's size, which guessing reaches
  bool quick = false;            // headers only: no byte is read, nothing computed
  bool run_large = false;        // the forward pass also where it takes long
  bool strict = false;           // unproven is no, and so is a warning
  bool allow_nonfinite = false;  // as `verify` takes it
  bool reencoded = false;        // found to be stored in another form than the record's
  KernelSelector select;
};

// The stored bytes of a tensor as `verify` hashed them.
struct TensorDigest {
  std::string name, type, sha256;
  std::vector<std::uint64_t> shape;
};

struct FileStages {
  Stage bytes, structure, numbers;
  std::vector<TensorDigest> digests;  // where they were asked for
  bool interrupted = false;
};
FileStages examine_files(const CheckSettings& settings, bool tensor_digests);
Stage examine_identity(const CheckSettings& settings);

}  // namespace assay
