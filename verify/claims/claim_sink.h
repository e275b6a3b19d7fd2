// Holds what was claimed of a file against its bytes, while it is hashed.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/formats/hash/hasher.h"
#include "core/formats/safetensors.h"
#include "core/system/finding.h"
#include "verify/claims/claim.h"

namespace assay {

struct ClaimOutcome {
  std::string diagnosis, remedy;    // of the first that does not hold; empty: all do
  Findings findings;                // of what was looked into
  std::vector<std::string> agreed;  // what was compared and is so: "the SHA-1 in bom.json"
};

// One claim, or several of the same kind.
class ClaimCheck {
 public:
  virtual ~ClaimCheck() = default;
  virtual void consume(std::span<const std::byte> bytes) = 0;
  virtual void conclude(ClaimOutcome& outcome) = 0;  // once, after the last byte
};

class ClaimSink : public ByteSink {
 public:
  // `tensors` of the file, by offset, where it has some; they outlive this, and so do the claims.
  ClaimSink(const FileClaims& claims, std::span<const safetensors::Tensor> tensors);
  void consume(std::span<const std::byte> bytes) override;
  ClaimOutcome take();

 private:
  std::vector<std::unique_ptr<ClaimCheck>> checks_;
  ClaimOutcome outcome_;
};

std::unique_ptr<ClaimCheck> check_file_digest(const FileClaim& claim);
std::unique_ptr<ClaimCheck> check_buffer(const FileClaim& claim);
std::unique_ptr<ClaimCheck> check_contents(const FileClaim& claim);
std::unique_ptr<ClaimCheck> check_tensors(std::vector<const FileClaim*> claims,
                                          std::span<const safetensors::Tensor> tensors);

// "SHA-256", "MD5", as people write them.
std::string shown_algorithm(std::string_view algorithm);

}  // namespace assay
