// Named intermediates of a forward pass: "layers.3.attn.q_rope". What each name means is in docs/run.md; the
// names are the same whatever kernels compute.
//
//   taps("embed", x);                  const TapScope at(taps, "layers", 3);    at("attn.q", q);
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "refimpl/ops/matrix.h"

namespace assay {

// Somebody who looks at intermediates while they pass. A matrix handed over may be changed afterwards by the
// model (rope rotates in place): keep a copy of its numbers, not the handle.
class TapListener {
 public:
  virtual ~TapListener() = default;
  virtual void see(const std::string& name, const Matrix& value) = 0;
  // The engine is about to read these tokens: rows of what passes until the next step are theirs.
  virtual void step(std::span<const std::uint32_t> /*tokens*/) {}
};

class Taps {
 public:
  Taps() = default;  // nobody listens
  explicit Taps(TapListener& listener) : listener_(&listener) {}
  bool listening() const { return listener_ != nullptr; }
  void operator()(std::string_view name, const Matrix& value) const {
    if (listener_ != nullptr) listener_->see(std::string(name), value);
  }
  void step(std::span<const std::uint32_t> tokens) const {
    if (listener_ != nullptr) listener_->step(tokens);
  }

 private:
  TapListener* listener_ = nullptr;
};

// The taps of one layer: names are prefixed "layers.3." ("mtp.0.").
class TapScope {
 public:
  TapScope(const Taps& taps, std::string_view kind, std::size_t index)
      : taps_(taps), kind_(kind), index_(index) {}
  bool listening() const { return taps_.listening(); }
  void operator()(std::string_view name, const Matrix& value) const {
    if (taps_.listening()) taps_(fmt::format("{}.{}.{}", kind_, index_, name), value);
  }

 private:
  const Taps& taps_;
  std::string_view kind_;
  std::size_t index_;
};

}  // namespace assay
