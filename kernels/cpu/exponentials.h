// What softmax is made of, over `count` numbers, any. To be included inside the namespace of an instruction
// set, where F32 is its tag of float and V32 a vector of it.

inline float largest(const float* x, std::size_t count) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  V32 most = hn::Set(d, -std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) most = hn::Max(most, hn::LoadU(d, x + i));
  float result = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < count; ++i) result = std::max(result, x[i]);
  return result;
}

// x[i] = e^(x[i] - m); their sum.
inline float exponentials(float* x, std::size_t count, float m) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  V32 sum = hn::Zero(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    // Below -103 the exponential is zero in float32; the vector one wants no infinities.
    const V32 shifted = hn::Max(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, m)), hn::Set(d, -104.0F));
    const V32 e = hn::IfThenElseZero(hn::Gt(shifted, hn::Set(d, -104.0F)), hn::Exp(d, shifted));
    hn::StoreU(e, d, x + i);
    sum = hn::Add(sum, e);
  }
  float result = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < count; ++i) {
    x[i] = std::exp(x[i] - m);
    result += x[i];
  }
  return result;
}

inline void scale(float* x, std::size_t count, float factor) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), d, x + i);
  for (; i < count; ++i) x[i] *= factor;
}
