// A loop written out: body(0), body(1) … with numbers known when compiling. Vectors in arrays stay in registers only where
// every index is such a number, and compilers leave loops of more than a few steps as they are. To be included inside the
// namespace of an instruction set; bodies are UNROLLED.

#undef UNROLLED
#ifdef HWY_ATTR
#define UNROLLED HWY_ATTR __attribute__((always_inline))
#else
#define UNROLLED __attribute__((always_inline))
#endif

template <std::size_t... I, class Body>
HWY_INLINE void unrolled_over(std::index_sequence<I...> /*numbers*/, const Body& body) {
  (body(std::integral_constant<std::size_t, I>()), ...);
}
template <std::size_t Count, class Body>
HWY_INLINE void unrolled(const Body& body) {
  unrolled_over(std::make_index_sequence<Count>(), body);
}
