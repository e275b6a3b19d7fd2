// A call's matrices as the products take them: x split or quantized, W apart from its scales, both on the
// device and aligned.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/gemm_product.h"

namespace assay::cuda {

// A matrix of float32 the kernels can read.
struct DeviceRows {
  const float* data = nullptr;
  std::size_t rows = 0, columns = 0, stride = 0;
  const std::int32_t* gather = nullptr;  // row r is row gather[r] of data
};
// x as a product takes it.
struct DeviceX {
  const unsigned char* data = nullptr;
  std::int64_t pitch = 0, plane = 0;
  const float* scales = nullptr;
  std::int32_t scale_columns = 1;
};
struct DeviceW {
  GemmWeight weight;
  std::int64_t pitch = 0;
  std::int32_t block_rows = 1, block_columns = 1, scale_columns = 1, first_row = 0;
};

// What a product is told of both but where its groups and its results are.
GemmArgs gemm_args(const DeviceX& x, const DeviceW& w, const GemmShape& shape, const GemmPlan& plan);

// One call's operands: memory of the host and of the device that lives until finish().
class Operations {
 public:
  Operations(Machine& machine, const GemmLaunchers& launchers)
      : limits_(machine.limits()), launchers_(launchers), staging_(machine.stage()) {}

  const DeviceLimits& limits() const { return limits_; }
  const GemmLaunchers& launchers() const { return launchers_; }
  Staging& staging() { return *staging_; }
  Stream stream() const { return staging_->stream(); }

  DeviceX for_gemm(const DeviceRows& x, GemmMath math);
  // Float32, of FP8 arithmetic what the codes stand for; or int8.
  DeviceX for_gemv(const DeviceRows& x, GemmMath math);
  DeviceW weight(const WeightView& weight, const Product& product, const WeightView& bias,
                 const Arithmetic& arithmetic);
  // GemmArgs::maps of a plan that wants them, else none.
  const TensorMap* maps(const GemmArgs& args, const std::vector<GemmWeight>& weights, const GemmShape& shape,
                        const GemmPlan& plan);
  template <class T>
  const T* upload(std::vector<T> values) {
    kept_.push_back(std::make_shared<std::vector<T>>(std::move(values)));
    const auto& vector = *static_cast<const std::vector<T>*>(kept_.back().get());
    if (vector.empty()) return nullptr;
    return static_cast<const T*>(staging_->read(vector.data(), vector.size() * sizeof(T)));
  }
  template <class T>
  T* scratch(std::size_t count) {
    return static_cast<T*>(staging_->scratch(count * sizeof(T)));
  }
  void finish() { staging_->finish(); }

 private:
  PrepareArgs prepare(const DeviceRows& x, std::size_t element_bytes, std::size_t planes);
  const float* scales_of(const WeightView& weight);
  const unsigned char* repacked(const WeightView& weight, const Product& product);
  // What `make` makes of a weight, made once where such things are kept (Staging::made_of).
  const float* kept_floats(const WeightView& weight, const std::string& what,
                           const std::function<std::vector<float>()>& make);

  const DeviceLimits& limits_;
  const GemmLaunchers& launchers_;
  std::unique_ptr<Staging> staging_;
  std::deque<std::shared_ptr<void>> kept_;
};

}  // namespace assay::cuda
