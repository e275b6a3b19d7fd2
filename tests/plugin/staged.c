/* Kernels whose operands are not lent as they are: bfloat16, and (on the CPU all the same, under
 * fake_cuda.c) of a device. The right ones are y = x W^T; `user` says what a wrong one does besides. */
#include "decode.h"

enum { NOTHING, BEHIND, BETWEEN, INPUT, ILLEGAL };

static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16); /* to nearest, ties to even; no NaN here */
}

static float get(const assay_matrix* m, size_t r, size_t c) {
  if (m->type == ASSAY_F32) return ((const float*)m->data)[r * m->stride + c];
  return float_of_bits((uint32_t)((const uint16_t*)m->data)[r * m->stride + c] << 16);
}
static void set(const assay_matrix* m, size_t r, size_t c, float value) {
  if (m->type == ASSAY_F32)
    ((float*)m->data)[r * m->stride + c] = value;
  else
    ((uint16_t*)m->data)[r * m->stride + c] = value != value ? 0x7FC0 : to_bf16(value);
}

static int takes(void* user, const assay_context* context, const assay_call* call) {
  const assay_linear* a = call->as.linear;
  (void)user;
  return a->bias == NULL && can_decode(a->weight) && a->weight->form == ASSAY_PLAIN &&
         (context->precision == ASSAY_PRECISION_F32) == (a->x.type == ASSAY_F32);
}

static int run(void* user, const assay_context* context, const assay_call* call, char* message,
               size_t message_size) {
  const assay_linear* a = call->as.linear;
  const int fault = (int)(intptr_t)user;
  float row[16384];
  size_t t, o, i;
  (void)message, (void)message_size;
  if (a->weight->columns > sizeof row / sizeof *row) return 1;
  if (a->x.rows == 0) return 0;
  for (o = 0; o < a->weight->rows; ++o) {
    decode_row(a->weight, o, row);
    for (t = 0; t < a->x.rows; ++t) {
      float sum = 0;
      for (i = 0; i < a->weight->columns; ++i) sum += get(&a->x, t, i) * row[i];
      set(&a->y, t, o, sum);
    }
  }
  if (fault == BEHIND) set(&a->y, a->y.rows - 1, a->y.stride, 1);
  if (fault == BETWEEN && a->y.stride > a->y.columns && a->y.rows > 1) set(&a->y, 0, a->y.columns, 1);
  if (fault == INPUT) set(&a->x, 0, 0, 3);
  if (fault == ILLEGAL) *(int*)context->stream = 700;
  return 0;
}

#define KERNEL(name, device, activations, fault)                                               \
  {                                                                                            \
    sizeof(assay_kernel), ASSAY_LINEAR, device, activations, name, "", ASSAY_ALL_INVARIANT, 0, \
        1.0 / (1 << 24), (void*)(intptr_t)(fault), takes, run                                  \
  }
static const assay_kernel all[] = {KERNEL("bf16", ASSAY_CPU, ASSAY_BF16, NOTHING),
                                   KERNEL("bf16-behind", ASSAY_CPU, ASSAY_BF16, BEHIND),
                                   KERNEL("bf16-between", ASSAY_CPU, ASSAY_BF16, BETWEEN),
                                   KERNEL("bf16-input", ASSAY_CPU, ASSAY_BF16, INPUT),
                                   KERNEL("cuda", ASSAY_CUDA, ASSAY_F32, NOTHING),
                                   KERNEL("cuda-bf16", ASSAY_CUDA, ASSAY_BF16, NOTHING),
                                   KERNEL("cuda-behind", ASSAY_CUDA, ASSAY_F32, BEHIND),
                                   KERNEL("cuda-between", ASSAY_CUDA, ASSAY_F32, BETWEEN),
                                   KERNEL("cuda-input", ASSAY_CUDA, ASSAY_F32, INPUT),
                                   KERNEL("cuda-illegal", ASSAY_CUDA, ASSAY_F32, ILLEGAL)};
enum { KINDS = sizeof all / sizeof *all };

const assay_plugin_info* assay_plugin(uint32_t abi) {
  static const assay_kernel* kernels[KINDS];
  static const assay_plugin_info info = {
      sizeof(assay_plugin_info), ASSAY_PLUGIN_ABI, "staged", "1", kernels, KINDS};
  int i;
  for (i = 0; i < KINDS; ++i) kernels[i] = &all[i];
  return abi == ASSAY_PLUGIN_ABI ? &info : NULL;
}
