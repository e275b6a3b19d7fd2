#!/usr/bin/env python3
"""Writes core/numeric/gguf_grids.cpp: the codebooks of the IQ block types, which are data and not derivable.

gguf-py holds every codebook as indices into a short list of magnitudes; so do we, one integer per point, first
coordinate lowest: 2 bits a coordinate for the IQ2 and IQ1 books (8 coordinates), 3 bits for the IQ3 books (4).

    python data/make_iq_grids.py > core/numeric/gguf_grids.cpp
"""
import numpy as np
from gguf import quants

BOOKS = [("IQ2_XXS", "kIq2Xxs"), ("IQ2_XS", "kIq2Xs"), ("IQ2_S", "kIq2S"),
         ("IQ3_XXS", "kIq3Xxs"), ("IQ3_S", "kIq3S"), ("IQ1_S", "kIq1")]
HEAD = """\
// Written by data/make_iq_grids.py from gguf-py's tables; ggml-common.h holds the same numbers expanded.
#include "core/numeric/gguf_grids.h"

namespace assay {
namespace {

// A point packs its coordinates as indices into `magnitudes`, the first in the lowest bits.
template <std::size_t points, std::size_t dimensions, std::size_t levels>
constexpr Grid<points, dimensions> expand(const std::uint16_t (&packed)[points],
                                          const std::int8_t (&magnitudes)[levels]) {
  constexpr int bits = dimensions == 8 ? 2 : 3;
  Grid<points, dimensions> grid{};
  for (std::size_t i = 0; i < points; ++i) {
    for (std::size_t j = 0; j < dimensions; ++j) {
      grid[i][j] = magnitudes[packed[i] >> (bits * j) & ((1u << bits) - 1)];
    }
  }
  return grid;
}

// clang-format off
"""


def main():
    print(HEAD, end="")
    footer = []
    for name, constant in BOOKS:
        book = getattr(quants, name)
        book.init_grid()
        points, dimensions = book.grid_shape
        bits = 2 if dimensions == 8 else 3
        levels = {value: index for index, value in enumerate(book.grid_map)}
        packed = [sum(levels[int(v)] << (bits * j) for j, v in enumerate(point))
                  for point in np.asarray(book.grid).reshape(points, dimensions)]
        print(f"constexpr std::int8_t {constant}Magnitudes[] = {{{', '.join(str(v) for v in book.grid_map)}}};")
        print(f"constexpr std::uint16_t {constant}Points[{points}] = {{")
        for start in range(0, points, 16):
            print("  " + ",".join(str(value) for value in packed[start:start + 16]) + ",")
        print("};\n")
        footer.append(f"constinit const Grid<{points}, {dimensions}> {constant}Grid = "
                      f"expand<{points}, {dimensions}>({constant}Points, {constant}Magnitudes);")
    print("}  // namespace\n// clang-format on\n")
    print("\n".join(footer))
    print("\n}  // namespace assay")


main()
