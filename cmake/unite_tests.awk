# Which test files are compiled as one: `awk -f unite_tests.awk -v most=8 FILE...` prints a unit's number and a file a line.
#
# Test files name their helpers without regard to each other, and a unit has one unnamed namespace: a file goes to the first
# unit of fewer than `most` files that has none of its names. As clang-format lays files out, what a namespace declares
# begins at the beginning of a line.

function last_word(text) {
  sub(/[^A-Za-z_0-9]*$/, "", text)
  sub(/^.*[^A-Za-z_0-9]/, "", text)
  return text
}

function declared(line) {
  if (line ~ /^(namespace|using namespace|template|static_assert|(TYPED_)?TEST|INSTANTIATE_|void PrintTo)/) return ""
  if (line ~ /^#define /) {
    sub(/^#define /, "", line)
  } else if (line !~ /^[A-Za-z_][^(={;[]*[(={;[]/) {
    return ""
  } else if (line ~ /^MATCHER/) {
    sub(/^MATCHER[_P0-9]*\(/, "", line)
  } else {
    match(line, /^[^(={;[]*/)
    line = substr(line, 1, RLENGTH)
    sub(/( final)?( : .*)?$/, "", line)  # what a type is derived from
    return last_word(line)
  }
  return match(line, /^[A-Za-z_0-9]+/) ? substr(line, 1, RLENGTH) : ""
}

function fits(unit,    name) {
  if (files[unit] >= most) return 0
  for (name in names)
    if ((unit, name) in taken && (names[name] == "" || taken[unit, name] != names[name])) return 0
  return 1
}

function place(    unit, name) {
  if (file == "") return
  unit = 0
  while (!fits(unit)) ++unit
  ++files[unit]
  for (name in names) taken[unit, name] = names[name]
  print unit, file
}

FNR == 1 {
  place()
  file = FILENAME
  split("", names)
}

# What is only named again may be so twice.
/^using [^=]*;/ && !/^using namespace/ {
  split($0, named, ",")
  for (i in named) names[last_word(named[i])] = "named again"
  next
}

{
  name = declared($0)
  if (name != "") names[name] = $0 ~ /^using / ? $0 : ""
}

END { place() }
