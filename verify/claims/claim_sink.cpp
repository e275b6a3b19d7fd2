#include "verify/claims/claim_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "core/system/error.h"
#include "verify/claims/claim_digest.h"
#include "verify/claims/tar_walk.h"
#include "verify/claims/unpack.h"

namespace assay {
namespace {

void disagree(ClaimOutcome& outcome, std::string diagnosis, std::string remedy = {}) {
  if (!outcome.diagnosis.empty()) return;
  outcome.diagnosis = std::move(diagnosis);
  outcome.remedy = std::move(remedy);
}

class FileDigestCheck : public ClaimCheck {
 public:
  explicit FileDigestCheck(const FileClaim& claim) : claim_(claim), digest_(claim.algorithm) {}
  void consume(std::span<const std::byte> bytes) override { digest_.update(bytes); }
  void conclude(ClaimOutcome& outcome) override {
    const std::string named = fmt::format("the {} in {}", shown_algorithm(claim_.algorithm), claim_.said_by);
    if (digest_.finish() == claim_.digest)
      outcome.agreed.push_back(named);
    else
      disagree(outcome, "does not have " + named, "download it again");
  }

 private:
  const FileClaim& claim_;
  ClaimDigest digest_;
};

// The bytes after the header of a safetensors file, whose length its first eight bytes say.
class BufferCheck : public ClaimCheck {
 public:
  explicit BufferCheck(const FileClaim& claim) : claim_(claim), digest_(claim.algorithm) {}
  void consume(std::span<const std::byte> bytes) override {
    while (prefix_bytes_ < prefix_.size() && !bytes.empty()) {
      prefix_[prefix_bytes_++] = bytes[0];
      bytes = bytes.subspan(1);
    }
    if (prefix_bytes_ == prefix_.size() && !skip_) {
      skip_ = 0;
      for (std::size_t i = prefix_.size(); i-- > 0;)
        *skip_ = *skip_ << 8 | std::to_integer<std::uint8_t>(prefix_[i]);
    }
    if (!skip_) return;
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(*skip_, bytes.size()));
    *skip_ -= n;
    digest_.update(bytes.subspan(n));
  }
  void conclude(ClaimOutcome& outcome) override {
    if (digest_.finish() == claim_.digest)
      outcome.agreed.push_back(claim_.said_by);
    else
      disagree(outcome, "holds other tensors than " + claim_.said_by + " says",
               "download it again; or whoever changed it left the old hash in its header");
  }

 private:
  const FileClaim& claim_;
  ClaimDigest digest_;
  std::array<std::byte, 8> prefix_{};
  std::size_t prefix_bytes_ = 0;
  std::optional<std::uint64_t> skip_;
};

// A layer, unpacked: its digest, and the names of an archive.
class ContentsCheck : public ClaimCheck {
 public:
  explicit ContentsCheck(const FileClaim& claim)
      : claim_(claim), unpacker_(make_unpacker(claim.packing)), walk_(claim.image) {
    if (!claim.digest.empty()) digest_.emplace(claim.algorithm);
  }
  void consume(std::span<const std::byte> bytes) override {
    attempt([&] { unpacker_->consume(bytes, [this](std::span<const std::byte> piece) { take(piece); }); });
  }
  void conclude(ClaimOutcome& outcome) override {
    attempt([&] {
      unpacker_->finish();
      if (claim_.archive) walk_.finish();
    });
    if (!failure_.empty()) return disagree(outcome, failure_, "pull it again");
    if (digest_ && digest_->finish() != claim_.digest)
      return disagree(outcome, fmt::format("holds other bytes, unpacked, than {} says", claim_.said_by),
                      "pull it again");
    if (digest_) outcome.agreed.push_back(fmt::format("what {} says of it unpacked", claim_.said_by));
    Findings found = walk_.take_findings();
    for (const Finding& finding : found) {
      if (finding.severity == Severity::error) disagree(outcome, "is hostile: " + finding.message);
    }
    std::move(found.begin(), found.end(), std::back_inserter(outcome.findings));
  }

 private:
  void take(std::span<const std::byte> piece) {
    if (digest_) digest_->update(piece);
    if (claim_.archive) walk_.consume(piece);
  }
  // After the first fault nothing more is looked at.
  template <typename Step>
  void attempt(Step step) {
    if (!failure_.empty()) return;
    try {
      step();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      failure_ =
          error.offset() ? fmt::format("{}, at byte {}", error.message(), *error.offset()) : error.message();
    }
  }

  const FileClaim& claim_;
  std::unique_ptr<Unpacker> unpacker_;
  std::optional<ClaimDigest> digest_;
  TarWalk walk_;
  std::string failure_;
};

}  // namespace

std::string shown_algorithm(std::string_view algorithm) {
  if (algorithm == "uuid") return "UUID";
  if (algorithm == "xxh64") return "XXH64";
  std::string shown(algorithm);
  for (char& c : shown) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (shown.starts_with("SHA") && !shown.starts_with("SHA3")) shown.insert(3, "-");
  return shown;
}

std::unique_ptr<ClaimCheck> check_file_digest(const FileClaim& claim) {
  return std::make_unique<FileDigestCheck>(claim);
}
std::unique_ptr<ClaimCheck> check_buffer(const FileClaim& claim) {
  return std::make_unique<BufferCheck>(claim);
}
std::unique_ptr<ClaimCheck> check_contents(const FileClaim& claim) {
  return std::make_unique<ContentsCheck>(claim);
}

ClaimSink::ClaimSink(const FileClaims& claims, std::span<const safetensors::Tensor> tensors) {
  std::vector<const FileClaim*> of_tensors;
  for (const FileClaim& claim : claims) {
    try {
      switch (claim.of) {
        case FileClaim::Of::file: checks_.push_back(check_file_digest(claim)); break;
        case FileClaim::Of::buffer: checks_.push_back(check_buffer(claim)); break;
        case FileClaim::Of::contents: checks_.push_back(check_contents(claim)); break;
        default: of_tensors.push_back(&claim);
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      outcome_.findings.push_back({.severity = Severity::warning,
                                   .code = "claim.not_looked_into",
                                   .message = error.message(),
                                   .remedy = error.remedy()});
    }
  }
  if (!of_tensors.empty()) checks_.push_back(check_tensors(std::move(of_tensors), tensors));
}

void ClaimSink::consume(std::span<const std::byte> bytes) {
  for (const auto& check : checks_) check->consume(bytes);
}

ClaimOutcome ClaimSink::take() {
  for (const auto& check : checks_) check->conclude(outcome_);
  checks_.clear();
  return std::move(outcome_);
}

}  // namespace assay
