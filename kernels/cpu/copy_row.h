// A row of a tile to or from a matrix: two vectors, or as many elements as exist. To be included inside the
// namespace of an instruction set.

HWY_INLINE void copy_row(const float* from, std::size_t count, std::size_t width, float* to) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  if (count < width) return static_cast<void>(std::memcpy(to, from, count * sizeof(float)));
  hn::StoreU(hn::LoadU(d, from), d, to);
  hn::StoreU(hn::LoadU(d, from + lanes), d, to + lanes);
}
