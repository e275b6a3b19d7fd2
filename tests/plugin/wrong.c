/* A plugin whose kernels are all wrong, each in a way of its own that has been shipped somewhere. `user` says
 * in which.
 *
 *   cc -O2 -shared -fPIC wrong.c -o wrong.so -lm && assay compare kernels --plugin ./wrong.so
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "decode.h"

enum fault {
  TAIL,             /* the last of an odd number of inputs is forgotten */
  TRANSPOSED_SCALE, /* the scale of block (j, i) in place of (i, j) */
  NULL_POINTER,
  ABORT,
  EXIT,
  HANG,
  STACK,
  HOG,
  BEHIND,         /* writes one element behind the last row */
  PADDING,        /* writes between rows */
  INPUT,          /* scales its argument in place */
  WEIGHT,         /* writes to the weight */
  READS_BEYOND,   /* reads a word behind the weight */
  READS_PADDING,  /* adds up what lies between rows */
  LATE,           /* a thread goes on writing after the kernel has returned */
  SAYS_NO,        /* fails, and says why */
  FLUSHES,        /* leaves the thread flushing subnormal numbers */
  FLUSHES_INSIDE, /* flushes them, and restores the mode before it returns */
  NOISY,          /* writes nonsense to every open descriptor, then exits */
  FORGETS,        /* leaves the last output as it was */
  CHANCE,         /* another order of sums each time */
  STALE,          /* keeps the rows of the last weight it saw by their address */
  STALE_INPUT,    /* and the last result by the address of its argument */
  SAME_VALUE,     /* writes to its argument what stands there */
  THREADS,        /* leaves a thread waiting for ever, each time */
  CHILD,          /* leaves a process behind */
  IGNORES_MAJOR,  /* takes a weight stored [inputs, outputs] for one stored [outputs, inputs] */
  KINDS
};

static int takes(void* user, const assay_context* context, const assay_call* call) {
  const assay_linear* a = call->as.linear;
  assay_weight weight;
  if (context->precision != ASSAY_PRECISION_F32 || a->weight == NULL || a->bias != NULL) return 0;
  weight = *a->weight;
  if ((enum fault)(intptr_t)user == IGNORES_MAJOR) weight.input_major = 0;
  return can_decode(&weight);
}

/* Rows of the output's width, whichever way round they are stored. */
static void ignore_major(assay_weight* weight) {
  const size_t bytes = weight->row_bytes / weight->columns, rows = weight->rows;
  if (!weight->input_major || weight->form != ASSAY_PLAIN || weight->type == ASSAY_Q8_0) return;
  weight->rows = weight->columns;
  weight->columns = rows;
  weight->row_bytes = bytes * weight->columns;
}

static void* go_on_writing(void* at) {
  int i;
  for (i = 0; i < 200; ++i) {
    usleep(1000);
    *(volatile float*)at = (float)i;
  }
  return NULL;
}

static void start_late_writer(float* at) {
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (pthread_create(&thread, &attributes, go_on_writing, at) != 0) abort();
}

static void* wait_for_ever(void* nothing) {
  for (;;) pause();
  return nothing;
}

static void leave_thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, wait_for_ever, NULL) == 0) pthread_detach(thread);
}

static void leave_child(void) {
  if (fork() == 0) {
    pause();
    _exit(0);
  }
}

static volatile int deeper = 1;
static int descend(int n) {
  volatile char frame[4096];
  frame[0] = (char)n;
  return deeper ? descend(n + 1) + frame[0] : n;
}

static void make_noise(void) {
  int descriptor;
  for (descriptor = 3; descriptor < 64; ++descriptor) {
    if (write(descriptor, "\x59\x50\x53\x41 this is not an answer", 26) < 0) continue;
  }
  _exit(0);
}

static void fill_memory(void) {
  for (;;) {
    char* more = (char*)malloc(1 << 24);
    if (more == NULL) abort();
    memset(more, 1, 1 << 24);
  }
}

static void before(enum fault fault, const assay_linear* a) {
  switch (fault) {
    case NULL_POINTER: *(volatile int*)NULL = 1; break;
    case ABORT: fprintf(stderr, "wrong.c: assertion 'fits' failed\n"), abort();
    case EXIT: exit(7);
    case HANG:
      for (;;) usleep(1000);
    case STACK: descend(0); break;
    case HOG: fill_memory(); break;
    case FLUSHES_INSIDE: _mm_setcsr(_mm_getcsr() | 0x8040); break;
    case INPUT: out_row(&a->x, 0)[0] *= 2; break;
    case SAME_VALUE: {
      volatile float* at = out_row(&a->x, 0);
      *at = *at;
      break;
    }
    case WEIGHT: *(volatile char*)a->weight->codes = 1; break;
    case READS_BEYOND:
      (void)*((const volatile char*)a->weight->codes + a->weight->rows * a->weight->row_bytes);
      break;
    case NOISY: make_noise(); break;
    default: break;
  }
}

static void after(enum fault fault, const assay_linear* a) {
  float* last = out_row(&a->y, a->y.rows - 1) + a->y.columns;
  switch (fault) {
    case BEHIND: *last = 1; break;
    case PADDING:
      if (a->y.rows > 1 && a->y.stride > a->y.columns) out_row(&a->y, 0)[a->y.columns] = 1;
      break;
    case LATE: start_late_writer(last - 1); break;
    case THREADS: leave_thread(); break;
    case CHILD: leave_child(); break;
    case FLUSHES: _mm_setcsr(_mm_getcsr() | 0x8040); break;
    default: break;
  }
}

static float scale_of(enum fault fault, const assay_weight* w, size_t o, size_t i) {
  const size_t rows = (w->rows + w->block_rows - 1) / w->block_rows;
  size_t r = (w->first_row + o) / w->block_rows, c = i / w->block_columns;
  if (fault == TRANSPOSED_SCALE && rows == w->scale_columns) {
    const size_t swap = r;
    r = c;
    c = swap;
  }
  return ((const float*)w->scales)[r * w->scale_columns + c];
}

static float product(enum fault fault, const assay_linear* a, const float* codes, size_t t, size_t o) {
  static unsigned turn;
  const float* x = row_of(&a->x, t);
  const size_t inputs = a->x.columns;
  size_t n = fault == TAIL ? inputs & ~(size_t)1 : inputs, i;
  const size_t begin = fault == CHANCE ? ++turn % inputs : 0;
  float sum = 0;
  if (fault == READS_PADDING && a->x.stride > inputs) sum += x[inputs];
  for (i = 0; i < n; ++i) {
    const size_t at = (begin + i) % inputs;
    const float scale = a->weight->form == ASSAY_SCALED ? scale_of(fault, a->weight, o, at) : 1;
    sum += x[at] * (codes[at] * scale);
  }
  return sum;
}

static int run(void* user, const assay_context* context, const assay_call* call, char* message,
               size_t message_size) {
  const assay_linear* a = call->as.linear;
  const enum fault fault = (enum fault)(intptr_t)user;
  assay_weight plain = *a->weight;
  float* row;
  static const void *seen_weight, *seen_input;
  static float kept_codes[1 << 17], kept_result[1 << 12];
  size_t t, o, first = 0;
  int fresh = 0;
  const unsigned mode = _mm_getcsr();
  (void)context;
  if (fault == SAYS_NO) {
    snprintf(message, message_size, "no workspace for %zu x %zu\nand a second line", a->y.rows, a->y.columns);
    return 5;
  }
  if (a->x.rows == 0 || a->y.columns == 0) return 0;
  before(fault, a);
  if (fault == IGNORES_MAJOR) ignore_major(&plain);
  plain.form = ASSAY_PLAIN; /* codes only: the scale comes in product() */
  if (fault == STALE_INPUT && a->y.columns <= 1 << 12) {
    if (seen_input == a->x.data) {
      memcpy(out_row(&a->y, 0), kept_result, a->y.columns * sizeof(float));
      first = 1;
    }
    seen_input = a->x.data;
  }
  row = (float*)malloc(plain.columns * sizeof *row);
  if (row == NULL) return 1;
  for (o = 0; o < plain.rows; ++o) {
    decode_row(&plain, o, row);
    if (fault == STALE && plain.rows * plain.columns <= 1 << 17) {
      float* kept = kept_codes + o * plain.columns;
      if (o == 0) fresh = seen_weight != plain.codes;
      if (fresh) memcpy(kept, row, plain.columns * sizeof *row);
      memcpy(row, kept, plain.columns * sizeof *row);
      seen_weight = plain.codes;
    }
    for (t = first; t < a->x.rows; ++t) {
      if (fault == FORGETS && o + 1 == plain.rows && t + 1 == a->x.rows) continue;
      out_row(&a->y, t)[o] = product(fault, a, row, t, o);
    }
  }
  if (fault == STALE_INPUT && a->y.columns <= 1 << 12)
    memcpy(kept_result, out_row(&a->y, 0), a->y.columns * sizeof(float));
  free(row);
  if (fault == FLUSHES_INSIDE) _mm_setcsr(mode);
  after(fault, a);
  return 0;
}

#define WRONG(fault, name, promises)                                                                 \
  {                                                                                                  \
    sizeof(assay_kernel), ASSAY_LINEAR, ASSAY_CPU, ASSAY_F32, name, "wrong on purpose", promises, 0, \
        1.0 / (1 << 24), (void*)(intptr_t)(fault), takes, run                                        \
  }
static const assay_kernel all[] = {WRONG(TAIL, "tail", ASSAY_ALL_INVARIANT),
                                   WRONG(TRANSPOSED_SCALE, "transposed-scale", ASSAY_ALL_INVARIANT),
                                   WRONG(NULL_POINTER, "null-pointer", ASSAY_ALL_INVARIANT),
                                   WRONG(ABORT, "abort", ASSAY_ALL_INVARIANT),
                                   WRONG(EXIT, "exit", ASSAY_ALL_INVARIANT),
                                   WRONG(HANG, "hang", ASSAY_ALL_INVARIANT),
                                   WRONG(STACK, "stack", ASSAY_ALL_INVARIANT),
                                   WRONG(HOG, "hog", ASSAY_ALL_INVARIANT),
                                   WRONG(BEHIND, "behind", ASSAY_ALL_INVARIANT),
                                   WRONG(PADDING, "padding", ASSAY_ALL_INVARIANT),
                                   WRONG(INPUT, "input", ASSAY_ALL_INVARIANT),
                                   WRONG(WEIGHT, "weight", ASSAY_ALL_INVARIANT),
                                   WRONG(READS_BEYOND, "reads-beyond", ASSAY_ALL_INVARIANT),
                                   WRONG(READS_PADDING, "reads-padding", ASSAY_ALL_INVARIANT),
                                   WRONG(LATE, "late", ASSAY_ALL_INVARIANT),
                                   WRONG(SAYS_NO, "says-no", ASSAY_ALL_INVARIANT),
                                   WRONG(FLUSHES, "flushes", ASSAY_ALL_INVARIANT),
                                   WRONG(FLUSHES_INSIDE, "flushes-inside", ASSAY_ALL_INVARIANT),
                                   WRONG(NOISY, "noisy", ASSAY_ALL_INVARIANT),
                                   WRONG(FORGETS, "forgets", ASSAY_ALL_INVARIANT),
                                   WRONG(CHANCE, "chance", 0),
                                   WRONG(STALE, "stale-weight", ASSAY_ALL_INVARIANT),
                                   WRONG(STALE_INPUT, "stale-input", ASSAY_ALL_INVARIANT),
                                   WRONG(SAME_VALUE, "same-value", ASSAY_ALL_INVARIANT),
                                   WRONG(THREADS, "threads", ASSAY_ALL_INVARIANT),
                                   WRONG(CHILD, "child", ASSAY_ALL_INVARIANT),
                                   WRONG(IGNORES_MAJOR, "ignores-major", ASSAY_ALL_INVARIANT)};

const assay_plugin_info* assay_plugin(uint32_t abi) {
  static const assay_kernel* kernels[KINDS];
  static const assay_plugin_info info = {
      sizeof(assay_plugin_info), ASSAY_PLUGIN_ABI, "wrong", "1", kernels, KINDS};
  int i;
  for (i = 0; i < KINDS; ++i) kernels[i] = &all[i];
  return abi == ASSAY_PLUGIN_ABI ? &info : NULL;
}
