# Debian packages are listed in scripts/packages.txt.
find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(ZLIB REQUIRED)  # npz, layers of models
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(TBB REQUIRED)
find_package(hwy REQUIRED)  # Highway: vector code, one source for every instruction set
find_package(PkgConfig REQUIRED)
pkg_check_modules(libgit2 REQUIRED IMPORTED_TARGET libgit2)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)  # the regexes of pre-tokenizers
pkg_check_modules(httplib REQUIRED IMPORTED_TARGET cpp-httplib)  # assay serve

# Optional: layers of models that are packed by it (verify/claims/unpack).
find_path(ZSTD_INCLUDE_DIR zstd.h)
find_library(ZSTD_LIBRARY zstd)

# Optional: a run of several processes (refimpl/ranks).
pkg_check_modules(OPENMPI ompi-c)

# Optional: matrix libraries, to be compared with ours (kernels/library).
pkg_check_modules(OPENBLAS openblas)
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)
