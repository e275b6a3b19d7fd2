// Rows to columns, four by four: rows[n] [terms] → out [terms][across], zeros where n ≥ count. T has 32 bits.
// To be included inside the namespace of an instruction set.

#if HWY_TARGET != HWY_SCALAR
// Terms [begin, begin + 4) of rows n … n + 3.
template <class T>
HWY_INLINE void transpose_four(const T* const* rows, std::size_t n, std::size_t count, std::size_t begin,
                               std::size_t across, T* out) {
  const hn::FixedTag<T, 4> d;
  const hn::Repartition<double, decltype(d)> wide;
  const auto pairs = [&](auto v) HWY_ATTR { return hn::BitCast(wide, v); };
  const auto row = [&](std::size_t i)
                       HWY_ATTR { return n + i < count ? hn::LoadU(d, rows[n + i] + begin) : hn::Zero(d); };
  const auto a = row(0), b = row(1), c = row(2), e = row(3);
  const auto low_ab = pairs(hn::InterleaveLower(d, a, b)), high_ab = pairs(hn::InterleaveUpper(d, a, b));
  const auto low_ce = pairs(hn::InterleaveLower(d, c, e)), high_ce = pairs(hn::InterleaveUpper(d, c, e));
  T* to = out + begin * across + n;
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, low_ab, low_ce)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, low_ab, low_ce)), d, to + across);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, high_ab, high_ce)), d, to + 2 * across);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, high_ab, high_ce)), d, to + 3 * across);
}
#endif

// A cache line of each four rows at a time: rows lie a power of two apart as a rule, and the nearest cache has not room
// for one of each.
template <class T>
void transpose_rows(const T* const* rows, std::size_t count, std::size_t terms, std::size_t across, T* out) {
  std::size_t done = 0;  // terms, of all rows
#if HWY_TARGET != HWY_SCALAR
  constexpr std::size_t kLine = 64 / sizeof(T);
  for (const std::size_t whole = terms / 4 * 4; done < whole;) {
    const std::size_t end = std::min(done + kLine, whole);
    for (std::size_t n = 0; n < across; n += 4) {
      for (std::size_t k = done; k < end; k += 4) transpose_four(rows, n, count, k, across, out);
    }
    done = end;
  }
#endif
  for (; done < terms; ++done) {
    for (std::size_t n = 0; n < across; ++n) out[done * across + n] = n < count ? rows[n][done] : T{0};
  }
}
