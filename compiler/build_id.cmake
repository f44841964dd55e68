# Writes OUTPUT with TEGULA_BUILD_ID, a hash of SOURCES.
foreach(source IN LISTS SOURCES)
  file(SHA256 ${source} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 id "${hashes}")
file(WRITE ${OUTPUT} "#define TEGULA_BUILD_ID \"${id}\"\n")
