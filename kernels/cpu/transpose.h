// Rows to columns, four by four: rows[n] [terms] → out [terms][across], zeros where n ≥ count. T has 32 bits.
// To be included inside the namespace of an instruction set.

template <class T>
void transpose_rows(const T* const* rows, std::size_t count, std::size_t terms, std::size_t across, T* out) {
  std::size_t done = 0;  // terms, of all rows
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<T, 4> d;
  const hn::Repartition<double, decltype(d)> wide;
  const auto pairs = [&](auto v) HWY_ATTR { return hn::BitCast(wide, v); };
  for (; done + 4 <= terms; done += 4) {
    for (std::size_t n = 0; n < across; n += 4) {
      const auto row = [&](std::size_t i) HWY_ATTR {
        return n + i < count ? hn::LoadU(d, rows[n + i] + done) : hn::Zero(d);
      };
      const auto a = row(0), b = row(1), c = row(2), e = row(3);
      const auto low_ab = pairs(hn::InterleaveLower(d, a, b)), high_ab = pairs(hn::InterleaveUpper(d, a, b));
      const auto low_ce = pairs(hn::InterleaveLower(d, c, e)), high_ce = pairs(hn::InterleaveUpper(d, c, e));
      T* to = out + done * across + n;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, low_ab, low_ce)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, low_ab, low_ce)), d, to + across);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, high_ab, high_ce)), d, to + 2 * across);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, high_ab, high_ce)), d, to + 3 * across);
    }
  }
#endif
  for (; done < terms; ++done) {
    for (std::size_t n = 0; n < across; ++n) out[done * across + n] = n < count ? rows[n][done] : T{0};
  }
}
