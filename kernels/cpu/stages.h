// What an arithmetic rounds between the stages of an operation. To be included inside the namespace of an instruction
// set, where F32 is its tag of float and V32 a vector of it.

struct KeepFloat32 {
  static HWY_INLINE V32 stage(V32 v) { return v; }
};

// To nearest, even, as encode(kBF16, …) has it: float32's upper half, rounded up by a carry; a NaN becomes a quiet one.
struct RoundToBf16 {
  static HWY_INLINE V32 stage(V32 v) {
    const F32 d;
    const hn::RebindToUnsigned<F32> du;
    const auto bits = hn::BitCast(du, v);
    const auto half = hn::Add(hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u)), hn::Set(du, 0x7FFFu));
    const auto quiet = hn::Or(bits, hn::Set(du, 0x400000u));
    const auto rounded = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, hn::Add(bits, half));
    return hn::BitCast(d, hn::And(rounded, hn::Set(du, 0xFFFF0000u)));
  }
};
