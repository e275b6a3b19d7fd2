// Claims about tensors, one by one and all of them after each other, as gguf-hash writes them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/system/finding_collector.h"
#include "verify/claims/claim_digest.h"
#include "verify/claims/claim_sink.h"

namespace assay {
namespace {

class TensorsCheck : public ClaimCheck {
 public:
  TensorsCheck(std::vector<const FileClaim*> claims, std::span<const safetensors::Tensor> tensors)
      : tensors_(tensors) {
    for (const FileClaim* claim : claims) {
      said_by_ = claim->said_by;
      if (claim->of == FileClaim::Of::all_tensors)
        whole_.push_back({claim, ClaimDigest(claim->algorithm)});
      else
        of_tensor_[claim->tensor].push_back(claim);
    }
  }

  void consume(std::span<const std::byte> bytes) override {
    const std::uint64_t piece_end = position_ + bytes.size();
    for (; current_ < tensors_.size(); close()) {
      const safetensors::Tensor& tensor = tensors_[current_];
      if (tensor.begin >= piece_end) break;
      if (!open_) open();
      const std::uint64_t from = std::max(position_, tensor.begin);
      const std::uint64_t to = std::min(piece_end, tensor.end);
      if (to > from) take(bytes.subspan(from - position_, to - from));
      if (tensor.end > piece_end) break;  // the rest comes with the next piece
    }
    position_ = piece_end;
  }

  void conclude(ClaimOutcome& outcome) override {
    for (; current_ < tensors_.size(); close()) {  // of no bytes, at the very end
      if (!open_) open();
    }
    for (Whole& whole : whole_) judge(*whole.claim, whole.digest.finish(), "");
    FindingCollector bounded;
    for (const auto& [name, claims] : of_tensor_) {
      if (seen_.contains(name)) continue;
      wrong_.push_back(name);
      bounded.add({.code = "claim.no_tensor",
                   .message = fmt::format("{} names it, and it is not here", said_by_),
                   .tensor = name});
    }
    for (Finding& finding : differing_) bounded.add(std::move(finding));
    if (!of_tensor_.empty() && unnamed_ > 0)
      bounded.add({.severity = Severity::warning,
                   .code = "claim.tensors_unnamed",
                   .message = fmt::format("{} of its {} tensors are not in {}", unnamed_, tensors_.size(),
                                          said_by_)});
    outcome.findings = bounded.take();
    if (!wrong_.empty() || !wrong_whole_.empty()) return tell_wrong(outcome);
    for (const std::string& algorithm : agreed_whole_)
      outcome.agreed.push_back(
          fmt::format("the {} of all its tensors in {}", shown_algorithm(algorithm), said_by_));
    for (const auto& [algorithm, count] : agreed_)
      outcome.agreed.push_back(
          fmt::format("the {} of {} tensors in {}", shown_algorithm(algorithm), count, said_by_));
  }

 private:
  struct Whole {
    const FileClaim* claim;
    ClaimDigest digest;
  };
  struct Open {
    const FileClaim* claim;
    ClaimDigest digest;
  };

  void open() {
    open_ = true;
    const auto it = of_tensor_.find(tensors_[current_].name);
    if (it == of_tensor_.end()) {
      ++unnamed_;
      return;
    }
    seen_.insert(it->first);
    for (const FileClaim* claim : it->second) now_.push_back({claim, ClaimDigest(claim->algorithm)});
  }
  void take(std::span<const std::byte> bytes) {
    for (Open& one : now_) one.digest.update(bytes);
    for (Whole& whole : whole_) whole.digest.update(bytes);
  }
  void close() {
    for (Open& one : now_) judge(*one.claim, one.digest.finish(), tensors_[current_].name);
    now_.clear();
    open_ = false;
    ++current_;
  }
  void judge(const FileClaim& claim, const std::string& actual, const std::string& tensor) {
    if (actual == claim.digest) {
      if (tensor.empty())
        agreed_whole_.insert(claim.algorithm);
      else
        ++agreed_[claim.algorithm];
      return;
    }
    if (tensor.empty()) {
      wrong_whole_ = claim.algorithm;
      return;
    }
    if (wrong_.empty() || wrong_.back() != tensor) wrong_.push_back(tensor);
    differing_.push_back(
        {.code = "claim.tensor_differs",
         .message = fmt::format("its {} is not that in {}", shown_algorithm(claim.algorithm), said_by_),
         .tensor = tensor});
  }
  void tell_wrong(ClaimOutcome& outcome) const {
    if (!outcome.diagnosis.empty()) return;
    if (wrong_.empty())
      outcome.diagnosis =
          fmt::format("does not have the {} of all tensors in {}", shown_algorithm(wrong_whole_), said_by_);
    else if (wrong_.size() == 1)
      outcome.diagnosis = fmt::format("tensor {} is not what {} says", wrong_[0], said_by_);
    else
      outcome.diagnosis =
          fmt::format("{} tensors are not what {} says, the first {}", wrong_.size(), said_by_, wrong_[0]);
    outcome.remedy = "download it again";
  }

  const std::span<const safetensors::Tensor> tensors_;
  std::string said_by_;
  std::map<std::string, std::vector<const FileClaim*>, std::less<>> of_tensor_;
  std::vector<Whole> whole_;
  std::vector<Open> now_;  // of the tensor that is being read
  std::size_t current_ = 0;
  std::uint64_t position_ = 0, unnamed_ = 0;
  bool open_ = false;
  std::set<std::string> seen_;
  std::map<std::string, std::size_t> agreed_;  // algorithm, and of how many tensors
  std::set<std::string> agreed_whole_;         // and of all in one
  std::vector<std::string> wrong_;
  std::string wrong_whole_;
  Findings differing_;
};

}  // namespace

std::unique_ptr<ClaimCheck> check_tensors(std::vector<const FileClaim*> claims,
                                          std::span<const safetensors::Tensor> tensors) {
  return std::make_unique<TensorsCheck>(std::move(claims), tensors);
}

}  // namespace assay
