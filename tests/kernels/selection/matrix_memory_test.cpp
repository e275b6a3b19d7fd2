#include "kernels/selection/matrix_memory.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(MatrixMemory, GivesAgainWhatNobodyHolds) {
  const auto memory = std::make_shared<MatrixMemory>();
  const float* first = nullptr;
  {
    const Matrix x = memory->allocate(3, 5, Real::f32);
    first = x.row<float>(0);
  }
  EXPECT_EQ(memory->allocate(5, 3, Real::f32).row<float>(0), first);
}

TEST(MatrixMemory, KeepsWhatAPartHolds) {
  const auto memory = std::make_shared<MatrixMemory>();
  Matrix part = memory->allocate(3, 5, Real::f32).part(1, 2);
  part.row<float>(2)[1] = 7;
  const Matrix other = memory->allocate(3, 5, Real::f32);
  other.row<float>(2)[2] = 9;
  EXPECT_EQ(part.row<float>(2)[1], 7);
}

TEST(MatrixMemory, MatricesOutliveIt) {
  auto memory = std::make_shared<MatrixMemory>();
  const Matrix x = memory->allocate(2, 2, Real::f64);
  memory.reset();
  x.row<double>(1)[1] = 3;
  EXPECT_EQ(x.row<double>(1)[1], 3);
}

TEST(MatrixMemory, RefusesWhatNoMemoryHolds) {
  const auto memory = std::make_shared<MatrixMemory>();
  EXPECT_THROW(memory->allocate(static_cast<std::size_t>(-1) / 2, 3, Real::f32), Error);
}

}  // namespace
}  // namespace assay
