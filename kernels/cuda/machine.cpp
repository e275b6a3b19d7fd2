#include "kernels/cuda/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "core/system/error.h"
#include "kernels/cuda/device_weight_cache.h"

namespace assay::cuda {
namespace {

constexpr std::align_val_t kScratchAlignment{256};

class EmulatedStaging final : public Staging {
 public:
  explicit EmulatedStaging(DeviceWeightCache* kept) : kept_(kept) {}
  ~EmulatedStaging() override {
    for (void* memory : scratch_) operator delete(memory, kScratchAlignment);
  }
  const void* read(const void* host, std::size_t) override { return host; }
  void* write(void* host, std::size_t) override { return host; }
  const void* keep(const void* host, std::size_t bytes) override {
    return kept_ == nullptr ? host : kept_->of_bytes(host, bytes);
  }
  const void* made_of(const WeightView& weight, const std::string& what,
                      const std::function<std::vector<std::byte>()>& make) override {
    const void* kept = kept_ == nullptr ? nullptr : kept_->of_made(weight, what, make);
    return kept == nullptr ? Staging::made_of(weight, what, make) : kept;
  }
  const void* filled_of(const WeightView& weight, const std::string& what, std::size_t bytes,
                        const std::function<void(void*)>& fill) override {
    const void* kept = kept_ == nullptr ? nullptr : kept_->of_filled(weight, what, bytes, fill);
    return kept == nullptr ? Staging::filled_of(weight, what, bytes, fill) : kept;
  }
  void* scratch(std::size_t bytes) override {
    void* memory = operator new(bytes, kScratchAlignment);
    scratch_.push_back(memory);
    return std::memset(memory, 0xFF, bytes);
  }
  std::uint32_t* counters(std::size_t count) override {
    counters_.resize(std::max(count, counters_.size()));
    return counters_.data();
  }
  TensorMap tensor_map(const TileSource& source) const override { return emulated_tensor_map(source); }
  Stream stream() const override { return nullptr; }
  void finish() override {
    throw_if_not_finite();
    if (std::any_of(counters_.begin(), counters_.end(), [](std::uint32_t word) { return word != 0; }))
      throw Error::internal("a kernel left a counter that is not 0");
  }

 private:
  DeviceWeightCache* kept_;
  std::vector<void*> scratch_;
  std::vector<std::uint32_t> counters_;
};

class EmulatedMachine final : public Machine {
 public:
  EmulatedMachine(const DeviceLimits& limits, DeviceWeightCache* kept) : limits_(limits), kept_(kept) {}
  std::string unavailable() const override { return {}; }
  const DeviceLimits& limits() const override { return limits_; }
  std::unique_ptr<Staging> stage() override { return std::make_unique<EmulatedStaging>(kept_); }

 private:
  const DeviceLimits limits_;
  DeviceWeightCache* kept_;
};

std::size_t bytes_of(const Matrix& x) {
  return ((x.rows() - 1) * x.stride() + x.columns()) * sizeof(float);
}

}  // namespace

const float* Staging::in(const Matrix& x) {
  return x.empty() ? nullptr : static_cast<const float*>(read(x.row<float>(0), bytes_of(x)));
}
float* Staging::out(const Matrix& x) {
  return x.empty() ? nullptr : static_cast<float*>(write(x.row<float>(0), bytes_of(x)));
}
const void* Staging::codes(const WeightView& weight) {
  if (weight.rows == 0 || weight.codes == nullptr) return nullptr;
  return keep(weight.codes, weight.rows * weight.row_bytes);
}
const void* Staging::scales(const WeightView& weight) {
  if (weight.rows == 0 || weight.scales == nullptr) return nullptr;
  return keep(weight.scales, scale_bytes(weight));
}

const void* Staging::filled_of(const WeightView&, const std::string&, std::size_t bytes,
                               const std::function<void(void*)>& fill) {
  void* made = scratch(bytes);
  fill(made);
  return made;
}
const void* Staging::made_of(const WeightView&, const std::string&,
                             const std::function<std::vector<std::byte>()>& make) {
  made_.push_back(make());
  return read(made_.back().data(), made_.back().size());
}

std::int32_t* Staging::not_finite() {
  return static_cast<std::int32_t*>(write(&not_finite_, sizeof not_finite_));
}
void Staging::throw_if_not_finite() const {
  if (not_finite_ != 0) throw not_finite_activations();
}

Error not_finite_activations() {
  return Error::input("activations became NaN or infinite: 8 bits cannot hold them")
      .remedy("look where with --dump, in f32");
}

std::unique_ptr<Machine> emulated_machine(int sm, DeviceWeightCache* kept) {
  const DeviceLimits* limits = limits_of(sm);
  if (limits == nullptr) throw Error::usage(fmt::format("nothing is known of sm_{}", sm));
  return emulated_machine(*limits, kept);
}

std::unique_ptr<Machine> emulated_machine(const DeviceLimits& limits, DeviceWeightCache* kept) {
  return std::make_unique<EmulatedMachine>(limits, kept);
}

}  // namespace assay::cuda
