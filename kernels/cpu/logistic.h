// σ and what is made of it, in vectors. To be included inside the namespace of an instruction set, where F32 is its tag
// of float and V32 a vector of it.

// σ(x) = 1 / (1 + e^-x); from -88 on down e^-x is held finite, and the quotient is as good as 0.
HWY_INLINE V32 sigmoid(V32 x) {
  const F32 d;
  const V32 e = hn::Exp(d, hn::Neg(hn::Max(x, hn::Set(d, -88.0F))));
  return hn::Div(hn::Set(d, 1.0F), hn::Add(hn::Set(d, 1.0F), e));
}
// NaN stays.
HWY_INLINE V32 sigmoid_of_any(V32 x) {
  return hn::IfThenElse(hn::Eq(x, x), sigmoid(x), x);
}

// As many as there are, and zeros behind them.
HWY_INLINE V32 load_some(const float* from, std::size_t count) {
  const F32 d;
  if (count >= hn::Lanes(d)) return hn::LoadU(d, from);
  HWY_ALIGN float rest[HWY_MAX_BYTES / sizeof(float)] = {};
  std::copy_n(from, count, rest);
  return hn::Load(d, rest);
}
HWY_INLINE void store_some(V32 v, float* to, std::size_t count) {
  const F32 d;
  if (count >= hn::Lanes(d)) return hn::StoreU(v, d, to);
  HWY_ALIGN float rest[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, rest);
  std::copy_n(rest, count, to);
}

// ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|); NaN stays.
HWY_INLINE V32 softplus_of_any(V32 x) {
  const F32 d;
  const V32 e = hn::Exp(d, hn::Neg(hn::Abs(hn::Max(hn::Min(x, hn::Set(d, 87.0F)), hn::Set(d, -87.0F)))));
  const V32 s = hn::Add(hn::Max(x, hn::Zero(d)), hn::Log1p(d, e));
  return hn::IfThenElse(hn::Eq(x, x), s, x);
}
