/* Elements of the stored forms these examples multiply, as float. */
#ifndef ASSAY_TESTS_PLUGIN_DECODE_H_
#define ASSAY_TESTS_PLUGIN_DECODE_H_

#include <assay/kernels/plugin.h>
#include <math.h>
#include <string.h>

static inline float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* A float of `exponent` and `mantissa` bits below a sign, without regard to infinities. */
static inline float small_float(uint32_t code, int exponent, int mantissa) {
  const int bias = (1 << (exponent - 1)) - 1;
  const uint32_t e = (code >> mantissa) & ((1u << exponent) - 1), m = code & ((1u << mantissa) - 1);
  const float magnitude = e == 0 ? ldexpf((float)m, 1 - bias - mantissa)
                                 : ldexpf((float)(m | (1u << mantissa)), (int)e - bias - mantissa);
  return (code >> (exponent + mantissa)) & 1u ? -magnitude : magnitude;
}

static inline int can_decode(const assay_weight* w) {
  if (w == NULL || w->input_major) return 0;
  if (w->form == ASSAY_SCALED)
    return (w->type == ASSAY_F8_E4M3 || w->type == ASSAY_I8) && w->scale_type == ASSAY_F32;
  return w->type == ASSAY_F32 || w->type == ASSAY_BF16 || w->type == ASSAY_F16 || w->type == ASSAY_Q8_0;
}

/* A row of `columns` codes, scales included. */
static inline void decode_row(const assay_weight* w, size_t row, float* out) {
  const unsigned char* codes = (const unsigned char*)w->codes + row * w->row_bytes;
  const size_t scale_row = (w->first_row + row) / (w->block_rows == 0 ? 1 : w->block_rows) * w->scale_columns;
  size_t c;
  for (c = 0; c < w->columns; ++c) {
    uint16_t half = 0;
    uint32_t word = 0;
    switch (w->type) {
      case ASSAY_F32: memcpy(&out[c], codes + 4 * c, 4); break;
      case ASSAY_BF16:
        memcpy(&half, codes + 2 * c, 2);
        word = (uint32_t)half << 16;
        out[c] = float_of_bits(word);
        break;
      case ASSAY_F16:
        memcpy(&half, codes + 2 * c, 2);
        out[c] = small_float(half, 5, 10);
        break;
      case ASSAY_Q8_0: /* blocks of 32: a half, then 32 signed bytes */
        memcpy(&half, codes + c / 32 * 34, 2);
        out[c] = small_float(half, 5, 10) * (float)(signed char)codes[c / 32 * 34 + 2 + c % 32];
        break;
      case ASSAY_I8: out[c] = (float)(signed char)codes[c]; break;
      default: out[c] = small_float(codes[c], 4, 3); break;
    }
    if (w->form == ASSAY_SCALED) out[c] *= ((const float*)w->scales)[scale_row + c / w->block_columns];
  }
}

static inline const float* row_of(const assay_matrix* m, size_t row) {
  return (const float*)m->data + row * m->stride;
}
static inline float* out_row(const assay_matrix* m, size_t row) {
  return (float*)m->data + row * m->stride;
}

#endif
