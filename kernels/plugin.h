/* Kernels of your own, as a shared library that assay examines (docs/plugin.md):
 *
 *   static int run(void* user, const assay_context* context, const assay_call* call, char* message,
 *                  size_t message_size) {
 *     const assay_linear* a = call->as.linear;
 *     ... write a->y ...
 *     return 0;
 *   }
 *   static const assay_kernel rows = {sizeof(assay_kernel), ASSAY_LINEAR, ASSAY_CPU, ASSAY_F32, "rows",
 *                                     "one dot product an output", ASSAY_ALL_INVARIANT, 0x1p-24, 0,
 *                                     takes, run};
 *   static const assay_kernel* const kernels[] = {&rows};
 *   static const assay_plugin_info info = {sizeof info, ASSAY_PLUGIN_ABI, "mine", "1.0", kernels, 1};
 *   const assay_plugin_info* assay_plugin(uint32_t abi) { return &info; }
 *
 *   cc -shared -fPIC -O2 mine.c -o libmine.so && assay compare kernels --plugin ./libmine.so
 *
 * C99, and C++. Nothing is linked. What an operation means is written down in refimpl/ops/interface.h; here
 * is how its operands lie.
 *
 * Growth. A struct that begins with `size` may get more fields at its end; whoever fills it in writes its
 * sizeof there, whoever reads it looks no further. ASSAY_HAS tells whether a field is there. Structs without
 * `size` never change while ASSAY_PLUGIN_ABI stays. A call of a kind that a later assay adds is offered only
 * to kernels of that operation.
 *
 * Memory. All of it is the host's. It is valid from the beginning of a callback to its end, and not touched
 * by anybody else meanwhile; do not keep pointers. Outputs are those fields that say so; nothing else may be
 * written. Nothing beyond the rows and columns may be read or written: padding between rows, what lies
 * behind a matrix and the unused rows of a cache hold NaN or end in memory that cannot be read.
 * Pointers are aligned to the size of an element (of blocks of GGUF: to 2 bytes), no more; on a device to 64
 * bytes. A kernel that needs rows aligned refuses strides that are not.
 *
 * CUDA. Kernels of ASSAY_CUDA get device pointers wherever a comment says [device]; the structs themselves,
 * and arrays of them, lie in ordinary memory. Work is enqueued on context->stream, or finished before
 * returning; the host waits for the stream before it looks at results.
 *
 * Threads. Callbacks come from one thread at a time, not always the same. A kernel may use context->jobs
 * threads of its own making, which have to be done with the call's memory when it returns.
 *
 * Sizes and counts are in elements, strides too; `row_bytes` alone is in bytes. */
#ifndef ASSAY_KERNELS_PLUGIN_H_
#define ASSAY_KERNELS_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASSAY_PLUGIN_ABI 1u

#define ASSAY_HAS(pointer, field)                                                                  \
  ((size_t)((const char*)&(pointer)->field - (const char*)(pointer)) + sizeof((pointer)->field) <= \
   (pointer)->size)

/* --- names ------------------------------------------------------------------------------------------- */

/* Operations. */
enum {
  ASSAY_LINEAR = 1,
  ASSAY_RMS_NORM = 2,
  ASSAY_LAYER_NORM = 3,
  ASSAY_ROPE = 4,
  ASSAY_ATTENTION = 5,
  ASSAY_MLA = 6,
  ASSAY_ACTIVATION = 7,
  ASSAY_GATED_ACTIVATION = 8,
  ASSAY_SOFTMAX = 9,
  ASSAY_MOE_GATE = 10,
  ASSAY_FUSED_MOE = 11,
  ASSAY_QUANTIZE = 12,
  ASSAY_DEQUANTIZE = 13,
  ASSAY_EMBEDDING = 14
};

enum { ASSAY_CPU = 0, ASSAY_CUDA = 1 }; /* devices */

/* Element types. Those of GGUF are ASSAY_GGML(id), id being ggml's own number (ggml.h, enum ggml_type):
 * bytes are laid out as in a GGUF file. */
#define ASSAY_GGML(id) (1000 + (id))
enum {
  ASSAY_F32 = 1,
  ASSAY_BF16 = 2,
  ASSAY_F16 = 3,
  ASSAY_F64 = 4,
  ASSAY_I8 = 5,
  ASSAY_F8_E4M3 = 6, /* "fn": largest 448, no infinities */
  ASSAY_F8_E5M2 = 7,
  ASSAY_F8_E8M0 = 8, /* of scales: 2^(code - 127) */
  ASSAY_Q4_0 = ASSAY_GGML(2),
  ASSAY_Q4_1 = ASSAY_GGML(3),
  ASSAY_Q5_0 = ASSAY_GGML(6),
  ASSAY_Q5_1 = ASSAY_GGML(7),
  ASSAY_Q8_0 = ASSAY_GGML(8),
  ASSAY_Q2_K = ASSAY_GGML(10),
  ASSAY_Q3_K = ASSAY_GGML(11),
  ASSAY_Q4_K = ASSAY_GGML(12),
  ASSAY_Q5_K = ASSAY_GGML(13),
  ASSAY_Q6_K = ASSAY_GGML(14),
  ASSAY_IQ4_NL = ASSAY_GGML(20),
  ASSAY_IQ4_XS = ASSAY_GGML(23),
  ASSAY_MXFP4 = ASSAY_GGML(39)
};

/* What is computed in: how activations are rounded, and what a product with an 8-bit weight means. */
enum {
  ASSAY_PRECISION_F32 = 1,
  ASSAY_PRECISION_BF16 = 2,      /* every result is rounded to bfloat16 */
  ASSAY_PRECISION_FP8_BLOCK = 3, /* where a weight is FP8 with scales, activations become FP8 first, a scale
                                    for 1 x 128 of them; results as under BF16 */
  ASSAY_PRECISION_INT8 = 4       /* where a weight is INT8 with scales, activations become INT8 first, a scale
                                    a row; results as under BF16 */
};

/* What a kernel promises of its bits (assay_kernel.invariants): it is held to these, of the others it is told.
 */
#define ASSAY_BATCH_INVARIANT \
  1u                              /* a token's (in attention: a sequence's) result does not depend on others \
                                   */
#define ASSAY_CHUNK_INVARIANT 2u  /* in attention: a prompt's first token gets what it gets by itself */
#define ASSAY_THREAD_INVARIANT 4u /* nothing depends on context->jobs */
#define ASSAY_LAYOUT_INVARIANT 8u /* nor on addresses and strides */
#define ASSAY_ALL_INVARIANT 15u

/* --- operands ---------------------------------------------------------------------------------------- */

/* rows x columns numbers: element (r, c) is number r * stride + c of data. */
typedef struct assay_matrix {
  void* data; /* [device]; null where the matrix is empty */
  size_t rows, columns, stride;
  int32_t type; /* assay_kernel.activations of the kernel */
  int32_t reserved;
} assay_matrix;

/* How a weight is stored. */
enum {
  ASSAY_PLAIN = 1, /* elements, or blocks of GGUF, one row after the other */
  ASSAY_SCALED = 2 /* element (r, c) is code * scales[(first_row + r) / block_rows * scale_columns
                      + c / block_columns] */
};

/* rows x columns values: [outputs, inputs] of a matrix, or the other way round where input_major; a vector
 * is one row. */
typedef struct assay_weight {
  uint32_t size;
  int32_t form, type; /* type: of the codes */
  int32_t input_major;
  size_t rows, columns, row_bytes;
  const void* codes;  /* [device] row r begins at byte r * row_bytes */
  const void* scales; /* [device] null where plain */
  int32_t scale_type;
  int32_t reserved;
  size_t block_rows, block_columns, scale_columns, first_row;
} assay_weight;

/* Rows of keys or values of one sequence: position p is row p of base, or, where there is a table of pages,
 * row pages[p / page_rows] * page_rows + p % page_rows. */
typedef struct assay_paged_kv {
  assay_matrix base;
  const int32_t* pages; /* [device] or null */
  size_t page_count, page_rows;
} assay_paged_kv;

/* One sequence of a batch. Its query i is row first + i of q, stands at position keys - queries + i, and sees
 * the keys up to that position, of these the last `window`. */
typedef struct assay_sequence {
  size_t first, queries, keys;
  assay_paged_kv key_rows, value_rows;
} assay_sequence;

/* --- operations -------------------------------------------------------------------------------------- */

/* y = x W^T + bias, [tokens, outputs] */
typedef struct assay_linear {
  uint32_t size;
  int32_t keep_float32;       /* y is float32 and not rounded, whatever the precision (a router's logits) */
  assay_matrix x;             /* [tokens, inputs] */
  const assay_weight* weight; /* [outputs, inputs] */
  const assay_weight* bias;   /* [1, outputs], or null */
  assay_matrix y;             /* output */
} assay_linear;

/* What is rounded before the weight comes in, where results are rounded at all. */
enum {
  ASSAY_NORM_WEIGHT_LAST = 1,    /* round(round(x / rms) * w) */
  ASSAY_NORM_WEIGHT_INSIDE = 2,  /* round(x / rms * w) */
  ASSAY_NORM_ONE_PLUS_WEIGHT = 3 /* round(x / rms * (1 + w)) */
};

/* y = x / sqrt(mean(x^2) + epsilon) * w over groups of weight->columns columns: the whole row, or each head
 * of it. */
typedef struct assay_rms_norm {
  uint32_t size;
  int32_t form;
  assay_matrix x;
  const assay_weight* weight;
  double epsilon;
  assay_matrix y; /* output */
} assay_rms_norm;

/* y = (x - mean) / sqrt(variance + epsilon) * w + bias */
typedef struct assay_layer_norm {
  uint32_t size;
  int32_t reserved;
  assay_matrix x;
  const assay_weight* weight; /* [1, columns] */
  const assay_weight* bias;   /* [1, columns], or null */
  double epsilon;
  assay_matrix y; /* output */
} assay_layer_norm;

/* Rotates pairs of elements of each head by the angles of its token, in place. The part that is rotated begins
 * at `offset` of a head and is d = 2 * cos.columns wide; pair i is (i, i + d / 2), or interleaved (2i, 2i +
 * 1): (a, b) -> (a cos - b sin, b cos + a sin) */
typedef struct assay_rope {
  uint32_t size;
  int32_t interleaved;
  assay_matrix x; /* [tokens, heads * head_dim]; output */
  size_t heads, head_dim, offset;
  assay_matrix cos, sin; /* [tokens, d / 2] */
} assay_rope;

/* y = sum of p v,  p = softmax(cap(scale * q.k)),  head h of q looking at head h / (heads / kv_heads) of the
 * cache */
typedef struct assay_attention {
  uint32_t size;
  int32_t reserved;
  assay_matrix q; /* [tokens, heads * qk_dim] */
  const assay_sequence* sequences;
  size_t sequence_count;
  size_t heads, kv_heads, qk_dim, v_dim;
  double scale;
  size_t window;             /* how many keys a query sees, itself included; 0: all */
  double soft_cap;           /* 0: none; else a score s becomes cap * tanh(s / cap) */
  const assay_weight* sinks; /* [1, heads], or null: a score that takes its share and gives no value */
  assay_matrix y;            /* [tokens, heads * v_dim]; output */
} assay_attention;

/* Attention over latents (DeepSeek-V2): a row of the cache is [latent (kv_rank) | rotary part (rope_dim)]; a
 * head of kv_b expands a latent to nope_dim numbers of its key and v_dim of its value. In place of kv_b there
 * may be k_b and v_b, [heads * kv_rank, nope_dim] and [heads * v_dim, kv_rank]. */
typedef struct assay_mla {
  uint32_t size;
  int32_t absorbed; /* queries are taken to the latents, nothing is expanded; else keys and values are */
  assay_matrix q;   /* [tokens, heads * (nope_dim + rope_dim)], rotated already */
  const assay_sequence* sequences; /* value_rows unused */
  size_t sequence_count;
  const assay_weight* kv_b; /* [heads * (nope_dim + v_dim), kv_rank], or null */
  const assay_weight* k_b;
  const assay_weight* v_b;
  size_t heads, kv_rank, nope_dim, rope_dim, v_dim;
  double scale;
  assay_matrix y; /* [tokens, heads * v_dim]; output */
} assay_mla;

enum {
  ASSAY_SILU = 1,      /* x sigmoid(x) */
  ASSAY_GELU = 2,      /* x Phi(x) */
  ASSAY_GELU_TANH = 3, /* x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
  ASSAY_RELU = 4,
  ASSAY_GPT_OSS = 5 /* gated only: g = min(gate, limit), u = clamp(up, -limit, limit):
                       g sigmoid(1.702 g) (u + 1) */
};

/* y = f(x) */
typedef struct assay_activation {
  uint32_t size;
  int32_t kind;
  assay_matrix x, y; /* y: output */
} assay_activation;

/* y = f(gate) * up */
typedef struct assay_gated_activation {
  uint32_t size;
  int32_t kind;
  double limit; /* of ASSAY_GPT_OSS */
  assay_matrix gate, up;
  assay_matrix y; /* output */
} assay_gated_activation;

/* y = softmax of each row */
typedef struct assay_softmax {
  uint32_t size;
  int32_t reserved;
  assay_matrix x, y; /* y: output */
} assay_softmax;

enum { ASSAY_SCORE_SOFTMAX = 1, ASSAY_SCORE_SIGMOID = 2 };
enum { ASSAY_GROUP_LARGEST = 1, ASSAY_GROUP_SUM_OF_TWO = 2 };

/* Scores of the logits; the top_k of score + correction, of the chosen_groups best groups only; their scores
 * (without correction), renormalized, times scale. Of equals the expert with the smaller number is taken. */
typedef struct assay_moe_gate {
  uint32_t size;
  int32_t score;
  assay_matrix logits;            /* [tokens, experts], always ASSAY_F32 */
  const assay_weight* correction; /* [1, experts], or null */
  int32_t top_k_first;            /* softmax over the chosen logits only */
  int32_t renormalize;            /* weights /= their sum + epsilon */
  double epsilon, scale;
  size_t top_k, groups, chosen_groups;
  int32_t group_score;
  int32_t round_weights;  /* to the precision of activations; else weights stay float32 */
  int32_t masked_is_zero; /* experts of groups not chosen have score 0, else -infinity */
  int32_t* experts;       /* [device] [tokens, top_k], on end; output, best first */
  assay_matrix weights;   /* [tokens, top_k]; output, always ASSAY_F32 */
} assay_moe_gate;

enum { ASSAY_MOE_SPARSE = 1, ASSAY_MOE_DENSE = 2, ASSAY_MOE_SOFT = 3 };

/* y = sum over a token's experts, in the order of their numbers, of weight * down(f(gate x) * up x) */
typedef struct assay_fused_moe {
  uint32_t size;
  int32_t form;
  assay_matrix x; /* [tokens, hidden] */
  size_t top_k, experts;
  const int32_t* chosen; /* [device] [tokens, top_k], on end */
  assay_matrix weights;  /* [tokens, top_k], always ASSAY_F32 */
  /* One for each expert; null where there are none. Either gate and up, or gate_up. */
  const assay_weight* const* gate; /* [width, hidden] */
  const assay_weight* const* up;
  const assay_weight* const* gate_up; /* [2 width, hidden] */
  const assay_weight* const* down;    /* [hidden, width] */
  const assay_weight* const* gate_bias;
  const assay_weight* const* up_bias;
  const assay_weight* const* gate_up_bias;
  const assay_weight* const* down_bias;
  int32_t interleaved; /* rows of gate_up: gate, up, gate, up ..., not all gates first */
  int32_t kind;        /* of activation */
  double limit;
  assay_matrix y; /* [tokens, hidden]; output */
} assay_fused_moe;

/* Codes, and a scale for block_rows x block_columns of them (0: all rows, the whole row). A scale is the
 * largest magnitude / the largest code (448, 57344, 127), for FP8 of a magnitude no less than 1e-4, for INT8
 * 1 where all is zero; rounded up to a power of two where power_of_two. */
typedef struct assay_quantize {
  uint32_t size;
  int32_t type; /* of the codes: ASSAY_F8_E4M3, ASSAY_F8_E5M2, ASSAY_I8 */
  assay_matrix x;
  size_t block_rows, block_columns;
  int32_t power_of_two;
  int32_t reserved;
  void* codes;   /* [device] [rows, columns], on end; output */
  float* scales; /* [device] [ceil(rows / block_rows), ceil(columns / block_columns)], on end; output */
} assay_quantize;

/* y = code * scale */
typedef struct assay_dequantize {
  uint32_t size;
  int32_t type;
  size_t rows, columns, block_rows, block_columns;
  const void* codes;   /* [device] */
  const float* scales; /* [device] */
  assay_matrix y;      /* output */
} assay_dequantize;

/* y = rows of the table */
typedef struct assay_embedding {
  uint32_t size;
  int32_t reserved;
  const uint32_t* tokens; /* [device] */
  size_t token_count;
  const assay_weight* table; /* [vocabulary, hidden] */
  assay_matrix y;            /* [token_count, hidden]; output */
} assay_embedding;

typedef struct assay_call {
  uint32_t size;
  int32_t op;
  union {
    const assay_linear* linear;
    const assay_rms_norm* rms_norm;
    const assay_layer_norm* layer_norm;
    const assay_rope* rope;
    const assay_attention* attention;
    const assay_mla* mla;
    const assay_activation* activation;
    const assay_gated_activation* gated_activation;
    const assay_softmax* softmax;
    const assay_moe_gate* moe_gate;
    const assay_fused_moe* fused_moe;
    const assay_quantize* quantize;
    const assay_dequantize* dequantize;
    const assay_embedding* embedding;
  } as;
} assay_call;

typedef struct assay_context {
  uint32_t size;
  int32_t precision; /* ASSAY_PRECISION_F32 ... */
  int32_t jobs;      /* threads to use at most */
  int32_t device;    /* number of the CUDA device; its primary context is current */
  void* stream;      /* cudaStream_t of kernels for CUDA */
} assay_context;

/* --- what a plugin offers ---------------------------------------------------------------------------- */

typedef struct assay_kernel {
  uint32_t size;       /* sizeof(assay_kernel) */
  int32_t op;          /* ASSAY_LINEAR ... */
  int32_t device;      /* ASSAY_CPU or ASSAY_CUDA */
  int32_t activations; /* ASSAY_F32, or ASSAY_BF16: how matrices come and results are due. BF16 kernels are
                          offered calls of rounded precisions only. */
  const char* name;    /* letters, digits, '_' and '-', up to 64; unique among the plugin's of an operation */
  const char* about;   /* half a line for people */
  uint32_t invariants; /* ASSAY_BATCH_INVARIANT | ... */
  uint32_t reserved;
  double accumulator_roundoff; /* of sums: 0x1p-24 for float32, more where a tensor core keeps fewer bits;
                                  the error that is allowed grows with it. 0x1p-53 ... 0x1p-8 */
  void* user;                  /* handed to the callbacks */
  /* Whether the kernel computes this call: not 0. Shapes, types and strides are as in run(); data may not be
   * touched, and is null. Refusing is no fault: the case is told as skipped. */
  int (*takes)(void* user, const assay_context* context, const assay_call* call);
  /* 0 when done. Else the call failed, and message (message_size bytes) says why in one line. */
  int (*run)(void* user, const assay_context* context, const assay_call* call, char* message,
             size_t message_size);
} assay_kernel;

typedef struct assay_plugin_info {
  uint32_t size;    /* sizeof(assay_plugin_info) */
  uint32_t abi;     /* ASSAY_PLUGIN_ABI */
  const char* name; /* like a kernel's; kernels are known as NAME.KERNEL. Not reference, cpu, cuda, library */
  const char* version; /* for people; may be null */
  const assay_kernel* const* kernels;
  size_t kernel_count;
} assay_plugin_info;

#if defined(_MSC_VER)
#define ASSAY_PLUGIN_EXPORT __declspec(dllexport)
#else
#define ASSAY_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

/* The one symbol a plugin exports. `abi` is the host's ASSAY_PLUGIN_ABI; null is an answer: nothing for it.
 * What it points to stays as it is while the library is loaded. */
ASSAY_PLUGIN_EXPORT const assay_plugin_info* assay_plugin(uint32_t abi);

#ifdef __cplusplus
}
#endif

#endif
