# Assembly (x86-64, ELF) of functions that stand in for those of shared libraries until they are first called:
#   awk -f late_functions.awk -v nm=nm -v readelf=readelf -v libraries="libz.so ..." ARCHIVE...
#
# As a procedure linkage table does it: each function jumps to where its slot points, which at first is to what puts the
# function's number on the stack and goes on to `load`. That keeps every register that may hold an argument (System V ABI,
# AMD64, 3.2.3), has assay_late_function find the function and put it into the slot, and jumps there. It may throw:
# nothing of the caller's is changed then.

function output_of(command,    line, text) {
  while ((command | getline line) > 0) text = text line "\n"
  close(command)
  return text
}

# What the archives call, and nobody in them has.
function read_wanted(    command, i, path, field) {
  command = nm " --format=posix"
  for (i = 1; i < ARGC; ++i) command = command " '" ARGV[i] "'"
  while ((command " 2>/dev/null" | getline) > 0) {
    if ($2 == "U") wanted[$1]
    else if ($2 ~ /^[A-Zui]$/) held[$1]
  }
  close(command " 2>/dev/null")
}

function soname(library,    text) {
  text = output_of(readelf " -d '" library "'")
  if (!match(text, /Library soname: \[[^]]*\]/)) {
    print "late_functions.awk: " library " has no soname" > "/dev/stderr"
    exit 1
  }
  text = substr(text, RSTART, RLENGTH)
  gsub(/^.*\[|\]$/, "", text)
  return text
}

function read_library(library,    command, number) {
  number = libraries_read++
  file[number] = soname(library)
  command = nm " -D --defined-only --format=posix '" library "'"
  while ((command | getline) > 0) {
    sub(/@.*/, "", $1)
    if (!($1 in wanted) || ($1 in held)) continue
    if ($2 != "T") {
      print "late_functions.awk: " $1 " of " library " is no function: the library cannot be loaded late" > "/dev/stderr"
      failed = 1
    }
    held[$1]
    function_name[functions] = $1
    library_of[functions++] = number
  }
  close(command)
}

function write_functions(    i) {
  print "\t.text"
  for (i = 0; i < functions; ++i) {
    printf "\t.globl %s\n\t.hidden %s\n\t.type %s, @function\n", function_name[i], function_name[i], function_name[i]
    printf "%s:\n\tjmp *slots+%d(%%rip)\n.Lfirst%d:\n\tpushq $%d\n\tjmp load\n", function_name[i], 8 * i, i, i
  }
}

# On the stack: the function's number, and where its caller goes on.
function write_load(    i, kept) {
  split("rax rcx rdx rsi rdi r8 r9 r10", kept)
  print "\t.type load, @function\nload:\n\t.cfi_startproc\n\t.cfi_def_cfa_offset 16"
  for (i = 1; i <= 8; ++i) printf "\tpushq %%%s\n\t.cfi_adjust_cfa_offset 8\n", kept[i]
  print "\tsubq $128, %rsp\n\t.cfi_adjust_cfa_offset 128"
  for (i = 0; i < 8; ++i) printf "\tmovups %%xmm%d, %d(%%rsp)\n", i, 16 * i
  print "\tmovq 192(%rsp), %rdi\n\tcall assay_late_function\n\tmovq %rax, %r11"
  print "\tleaq slots(%rip), %rax\n\tmovq 192(%rsp), %rcx\n\tmovq %r11, (%rax,%rcx,8)"
  for (i = 0; i < 8; ++i) printf "\tmovups %d(%%rsp), %%xmm%d\n", 16 * i, i
  print "\taddq $128, %rsp\n\t.cfi_adjust_cfa_offset -128"
  for (i = 8; i >= 1; --i) printf "\tpopq %%%s\n\t.cfi_adjust_cfa_offset -8\n", kept[i]
  print "\taddq $8, %rsp\n\t.cfi_adjust_cfa_offset -8\n\tjmp *%r11\n\t.cfi_endproc"
}

# assay_late_libraries: their names. assay_late_functions: of each the number of its library, and its name. Names lie at
# offsets from assay_late_names: pointers would be written to at every start.
function write_tables(    i, offset) {
  print "\t.data\n\t.balign 8\nslots:"
  for (i = 0; i < functions; ++i) printf "\t.quad .Lfirst%d\n", i
  print "\t.section .rodata\n\t.balign 4\n\t.globl assay_late_table\n\t.hidden assay_late_table\nassay_late_table:"
  for (i = 0; i < functions; ++i) printf "\t.long .Lfile%d - assay_late_names, .Lname%d - assay_late_names\n", library_of[i], i
  print "\t.globl assay_late_names\n\t.hidden assay_late_names\nassay_late_names:"
  for (i = 0; i < libraries_read; ++i) printf ".Lfile%d:\t.asciz \"%s\"\n", i, file[i]
  for (i = 0; i < functions; ++i) printf ".Lname%d:\t.asciz \"%s\"\n", i, function_name[i]
  print "\t.section .note.GNU-stack, \"\", @progbits"
}

BEGIN {
  functions = libraries_read = failed = 0
  read_wanted()
  count = split(libraries, library, " ")
  for (i = 1; i <= count; ++i) read_library(library[i])
  if (failed) exit 1
  write_functions()
  write_load()
  write_tables()
}
