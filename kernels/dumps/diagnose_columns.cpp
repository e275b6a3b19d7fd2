// Explanations within a token's vector: rotary pairs in the other layout, heads in another order, rotated by
// other angles.
//
//   halves  x[i], x[i + r/2] rotate together (transformers);   pairs  x[2i], x[2i + 1] do (DeepSeek, GGUF's
//   Llama)
//
// The rotary part is a head's whole, or its last or first r elements (MLA: 64 of 192).
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kernels/dumps/hypotheses.h"

namespace assay::dumps {
namespace {

constexpr std::size_t kWidestHead = 1024;
constexpr double kFewestRotated = 4;  // pairs: (Σ d²)² / Σ d⁴ counts those that move

std::vector<std::size_t> head_widths(std::size_t width) {
  std::vector<std::size_t> heads;
  for (std::size_t d = 2; d <= std::min(width, kWidestHead); ++d) {
    if (width % d == 0) heads.push_back(d);
  }
  return heads;
}

struct Rotary {
  std::size_t head = 0, first = 0, count = 0;  // of a head's elements
};

std::string describe(const Rotary& r) {
  if (r.count == r.head) return fmt::format("heads of {}", r.head);
  return fmt::format("the {} {} elements of heads of {}", r.first == 0 ? "first" : "last", r.count, r.head);
}

std::vector<Rotary> rotary_parts(std::size_t width) {
  std::vector<Rotary> parts;
  for (const std::size_t head : head_widths(width)) {
    for (const std::size_t count : {head, head / 2, head / 3, head / 4}) {
      if (count < 4 || count % 2 != 0) continue;
      parts.push_back({head, head - count, count});
      if (count != head) parts.push_back({head, 0, count});
    }
  }
  return parts;
}

// Where TEST's column j comes from, if TEST lies as pairs and REF as halves; else the reverse.
std::vector<std::size_t> other_layout(std::size_t width, const Rotary& r, bool test_in_pairs) {
  std::vector<std::size_t> from(width);
  for (std::size_t j = 0; j < width; ++j) {
    const std::size_t in_head = j % r.head, start = j - in_head + r.first;
    if (in_head < r.first || in_head >= r.first + r.count) {
      from[j] = j;
      continue;
    }
    const std::size_t k = in_head - r.first, half = r.count / 2;
    from[j] = start + (test_in_pairs ? k / 2 + k % 2 * half : (k < half ? 2 * k : 2 * (k - half) + 1));
  }
  return from;
}

void search_layouts(Search& s) {
  for (const Rotary& r : rotary_parts(s.ref().width)) {
    for (const bool pairs : {true, false}) {
      s.attempt_columns(other_layout(s.ref().width, r, pairs), [&] {
        const std::string_view test = pairs ? "pairs side by side" : "two halves",
                               ref = pairs ? "two halves" : "pairs side by side";
        return Diagnosis{
            pairs ? "rope_pairs" : "rope_halves",
            fmt::format("the rotary elements lie as {}, REF's as {}: {}", test, ref, describe(r)),
            r.count == r.head ? fmt::format("if only the dumps differ, say rope={}:{} in the map file",
                                            pairs ? "pairs-to-halves" : "halves-to-pairs", r.head)
                              : std::string()};
      });
    }
  }
}

void search_heads(Search& s) {
  const std::size_t width = s.ref().width;
  for (const std::size_t head : head_widths(width)) {
    const std::size_t heads = width / head;
    if (heads < 2) continue;
    std::vector<std::size_t> from(width);
    for (std::size_t j = 0; j < width; ++j) from[j] = j % heads * head + j / heads;
    s.attempt_columns(from, [&] {
      return Diagnosis{"heads_transposed",
                       fmt::format("within a token it lies as [{}, heads], REF as [heads, {}]", head, head),
                       ""};
    });
    // TEST's head h is the REF's head that resembles it most on the first token.
    if (heads > 256 || head < 4) continue;
    std::vector<std::size_t> of(heads);
    const std::size_t i = s.rows().front();
    for (std::size_t h = 0; h < heads; ++h) {
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t other = 0; other < heads; ++other) {
        double distance = 0;
        for (std::size_t k = 0; k < head; ++k) {
          const double difference = s.test().row(i)[h * head + k] - s.ref().row(i)[other * head + k];
          distance += difference * difference;
        }
        if (distance < least) {
          least = distance;
          of[h] = other;
        }
      }
    }
    if (std::is_sorted(of.begin(), of.end()) && std::adjacent_find(of.begin(), of.end()) == of.end())
      continue;
    for (std::size_t j = 0; j < width; ++j) from[j] = of[j / head] * head + j % head;
    s.attempt_columns(from, [&] {
      std::size_t first = 0;
      while (first < of.size() && of[first] == first) ++first;
      return Diagnosis{"heads_permuted",
                       fmt::format("blocks of {} columns stand in another order: block {} is REF's block {}",
                                   head, first, of[first]),
                       "heads, experts or ranks put together in another order"};
    });
  }
}

// Every pair has REF's length and another angle: rotated by other positions, another base, or the other
// layout. Many pairs are: of a few elements that differ, lengths may agree by chance.
void search_angles(Search& s) {
  const Activations &ref = s.ref(), &test = s.test();
  if (s.rows().size() < 2) return;
  for (const Rotary& r : rotary_parts(ref.width)) {
    if (r.count < 8) continue;
    for (const bool pairs : {true, false}) {
      const std::size_t half = r.count / 2;
      double error = 0, size = 0, plain = 0, plain_squares = 0;
      for (const std::size_t i : s.rows()) {
        for (std::size_t j = 0; j < ref.width; ++j) {
          const double t = test.row(i)[j], x = ref.row(i)[j];
          const std::size_t in_head = j % r.head;
          size += t * t;
          if (in_head < r.first || in_head >= r.first + r.count) {
            error += (t - x) * (t - x);
            continue;
          }
          const std::size_t k = in_head - r.first;
          const bool leads = pairs ? k % 2 == 0 : k < half;
          if (!leads) continue;
          const std::size_t mate = pairs ? j + 1 : j + half;
          const double u = test.row(i)[mate], y = ref.row(i)[mate];
          const double difference = std::hypot(t, u) - std::hypot(x, y);
          error += difference * difference;
          const double moved = (t - x) * (t - x) + (u - y) * (u - y);
          plain += moved;
          plain_squares += moved * moved;
        }
        if (error > 0.05 * size) break;
      }
      if (!(plain * plain >= kFewestRotated * plain_squares) || !(plain > 0) || !(size > 0)) continue;
      s.offer({"rope_angles",
               fmt::format("every rotary pair has REF's length and another angle ({}, {})", describe(r),
                           pairs ? "pairs side by side" : "two halves"),
               "rope by other positions, another base or scaling, left out, or done twice",
               std::sqrt(error / size)});
    }
  }
}

}  // namespace

void search_columns(Search& search) {
  if (search.ref().width < 4) return;
  search_layouts(search);
  search_heads(search);
  search_angles(search);
}

}  // namespace assay::dumps
