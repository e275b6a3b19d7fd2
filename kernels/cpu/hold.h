// To be included inside the namespace of an instruction set.

// The vector is in a register from here on: a compiler that would rather load it again for each use, or compute all of
// a tile's sums side by side in memory, may not.
template <class V>
HWY_INLINE void hold(V& v) {
#if HWY_TARGET <= HWY_AVX3
  asm volatile("" : "+v"(v.raw));
#elif HWY_TARGET <= HWY_SSE4
  asm volatile("" : "+x"(v.raw));
#else
  static_cast<void>(v);
#endif
}
