#include "refimpl/models/residual_convolution.h"

namespace assay {

ResidualConvolution::ResidualConvolution(const Weights& weights, const WeightKey& key, std::size_t state)
    : state_(state) {
  convolution_.weight = weights.get(key);
  convolution_.channels = convolution_.weight.rows;
  convolution_.kernel = convolution_.weight.columns;
}

Matrix ResidualConvolution::operator()(const Matrix& x, std::size_t layer, const Batch& batch,
                                       Ops& ops) const {
  return *this ? ops.add(convolution_(x, layer, state_, false, batch, ops), x) : x;
}

}  // namespace assay
