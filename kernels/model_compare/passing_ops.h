// An Ops that hands every call on to another: to look at what passes, derive and override.
#pragma once

#include "kernels/registry/calling_ops.h"

namespace assay {

class PassingOps : public CallingOps<PassingOps, Ops> {
 public:
  explicit PassingOps(Ops& inner) : CallingOps(inner.arithmetic(), inner.jobs()), inner_(inner) {}

  Matrix allocate(std::size_t rows, std::size_t columns) override { return inner_.allocate(rows, columns); }
  Matrix upload(std::span<const double> values, std::size_t rows, std::size_t columns) override {
    return inner_.upload(values, rows, columns);
  }
  std::vector<double> download(const Matrix& x) override { return inner_.download(x); }
  void store(const PagedKvView& cache, std::size_t position, const Matrix& source) override {
    inner_.store(cache, position, source);
  }
  Matrix gather(const Matrix& x, std::span<const std::size_t> rows) override {
    return inner_.gather(x, rows);
  }
  template <class Call>
  ResultOf<Call> call(const Call& call) {
    return inner_.run(call);
  }
  Matrix add(const Matrix& a, const Matrix& b) override { return inner_.add(a, b); }
  Matrix multiply(const Matrix& x, double factor) override { return inner_.multiply(x, factor); }
  Matrix soft_cap(const Matrix& x, double cap) override { return inner_.soft_cap(x, cap); }
  Matrix scale(const Matrix& x, const Matrix& factors) override { return inner_.scale(x, factors); }
  Matrix clamp(const Matrix& x, double limit) override { return inner_.clamp(x, limit); }
  Matrix concatenate(const Matrix& a, const Matrix& b) override { return inner_.concatenate(a, b); }
  Matrix of_each(const Matrix& x, std::size_t width, std::size_t first, std::size_t count) override {
    return inner_.of_each(x, width, first, count);
  }

 private:
  Ops& inner_;
};

}  // namespace assay
