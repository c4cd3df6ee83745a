# Writes OUT, a unit that tells what the library was built from: a hash of its sources (under ROOT, without those that
# WITHOUT, a regular expression, matches) and of FLAGS.
# Compiled models of another build are not taken: kernels pack their weights as they please.
file(GLOB_RECURSE files ${ROOT}/src/*.h ${ROOT}/src/*.cc ${ROOT}/include/*.h)
list(FILTER files EXCLUDE REGEX "${WITHOUT}")
list(SORT files)
set(all "${FLAGS}")
foreach(file IN LISTS files)
  file(SHA256 ${file} hash)
  string(APPEND all "${hash}")
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING "${id}" 0 12 id)
file(WRITE ${OUT} "namespace lamina {\nextern const char* const build_id;\nconst char* const build_id = \"${id}\";\n}\n")
